"""Settings from ``config/config.yaml``, ``--config`` and the suite file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from core import own_axes
from pydantic import AfterValidator, ValidationInfo, model_validator

from . import secrets, values
from .catalog import Catalog
from .cluster import Cluster, of_kind
from .fields import (
    MILLION,
    AllowedValues,
    Count,
    Distinct,
    Folder,
    FrameworkName,
    FromList,
    FromText,
    Keys,
    MemoryLimit,
    ModelName,
    NodesNamed,
    OrAll,
    ReadAs,
    Records,
    Seconds,
    Switch,
    Text,
    ValidationContext,
    Whole,
    default,
    each_once,
    text,
    validated,
)
from .own_model import OwnModel, OwnModelKey
from .own_suite import of_own_model
from .provided import ImageEntry, Interpreter, ModulesEntry, Pin
from .statuses import FAILURES
from .suite import Suite, load_suite
from .validation import ConfigError, NotAllowed, show

#: Source of the configuration, for messages.
SOURCE = "config (config/config.yaml or --config)"
CLUSTER_SOURCE = "config (profiles/slurm/cluster.yaml or another configfile)"
#: Folders in ``results``.
FOLDERS = ("runs", "logs", "tables", "verification", "peak_flops", "reference", "largest_batch")


def _kinds(text: str) -> Path:
    folder = values.existing_folder(text)
    try:
        own_axes.load(str(folder))
    except Exception as error:
        shown = f"{show(text)}: {type(error).__name__}: {error}"
        raise NotAllowed("a folder whose axes.py can be imported", shown) from None
    return folder


def _suite(name: str, info: ValidationInfo[ValidationContext]) -> Suite:
    data = info.data
    folders = (data.get(key) for key in ("kinds", "storage", "data", "results"))
    return load_suite(name, info.context.catalog, *folders)


def _results(folder: Path) -> Path:
    for name in FOLDERS:
        inner = values.path(str(folder / name))
        if inner.exists() and not inner.is_dir():
            shown = f"{show(str(inner))}, which is a file"
            raise NotAllowed("a folder, or nothing of that name", shown)
    return folder


_SUITE = text("a text: the name of a suite, or the path of a YAML file")
if TYPE_CHECKING:
    _Status = str
else:
    _Status = Literal[tuple(FAILURES)]
_Statuses = Annotated[
    list[_Status],
    AfterValidator(each_once),
    FromList,
    AllowedValues(f"a list of {', '.join(FAILURES)}, each value once"),
]


class Configuration(Keys):
    """Keys of the configuration."""

    kinds: Annotated[Path, ReadAs(Text, _kinds)] | None = None
    storage: Annotated[Path, ReadAs(Text, values.existing_folder)] | None = None
    data: Folder | None = None
    bad_images: Literal["refuse", "skip"] = "refuse"
    results: Annotated[Folder, AfterValidator(_results)] = default("results")
    suite: Annotated[Suite, ReadAs(_SUITE, _suite)] = default("quick")
    records: Records | None = None
    nodes_named: NodesNamed | None = None
    frameworks: Annotated[Distinct[FrameworkName], FromList, OrAll("frameworks")] = default("all")
    models: Annotated[Distinct[ModelName], FromList, OrAll("models")] = default("all")
    cases: Annotated[
        list[Text],
        AfterValidator(each_once),
        FromList,
        AllowedValues("a list of cases as the plan names them, each once"),
    ] = default([])
    model: OwnModelKey | None = None
    retry: Annotated[frozenset[str], ReadAs(_Statuses, frozenset)] = default([])
    rerun_disturbed: Annotated[int, Whole(0, 100), FromText] = 0
    side_by_side: Switch = False
    emulated: Literal["skip", "measure"] = "skip"
    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    cores_per_device: Annotated[
        Count | Literal["auto"],
        FromText,
        AllowedValues(f"auto, or a whole number of at least 1 and at most {MILLION}"),
    ] = "auto"
    time_budget: Seconds | None = None
    time_limit: Seconds = 1800
    memory_limit: MemoryLimit = "auto"
    seed: Annotated[int, Whole(0, MILLION), FromText] = 0
    interpreters: Annotated[
        dict[FrameworkName, Interpreter], AllowedValues("a mapping from framework to path")
    ] = default({})
    cluster: Cluster | None = None
    images: Annotated[
        dict[FrameworkName, ImageEntry], AllowedValues("a mapping from framework to image")
    ] = default({})
    modules: Annotated[
        dict[FrameworkName, ModulesEntry], AllowedValues("a mapping from framework to list")
    ] = default({})
    packages: Annotated[
        dict[FrameworkName, list[Pin]], AllowedValues("a mapping from framework to list")
    ] = default({})
    environments: Folder = default(".venvs")
    node_local: Switch = False
    require_hashes: Switch = True
    yes: Switch = False

    @model_validator(mode="after")
    def _agreeing(self) -> Configuration:
        if self.nodes_named and not self.suite.nodes_named:
            raise NotAllowed(
                f"nothing for suite {self.suite.name}; with one that measures each node, such as "
                "node_health",
                show(self.nodes_named),
                "nodes_named",
            )
        if self.time_budget and not self.suite.time_budget:
            raise NotAllowed(
                f"nothing for suite {self.suite.name}; with one that has a time_budget, such as "
                "quick",
                show(self.time_budget),
                "time_budget",
            )
        if self.side_by_side and self.cluster:
            raise NotAllowed(
                "false, because the scheduler shares devices out",
                "True beside cluster",
                "side_by_side",
            )
        if self.node_local and self.packages:
            raise NotAllowed("none with node_local", show(dict(self.packages)), "packages")
        if self.node_local and not self.environments.is_absolute():
            raise NotAllowed(
                "with node_local, the absolute path of a folder on a disk that every node has",
                show(str(self.environments)),
                "environments",
            )
        return self


class Settings(Configuration):
    """The checked configuration.

    ``accelerator`` and ``cores_per_device`` may still be ``auto``; ``time_limit`` is in seconds per
    run, ``memory_limit`` in the harness's form, None without one. ``deployment``: method of
    ``--sdm``, "" without one. ``environments``: folder of environments, with ``node_local`` on each
    node; ``require_hashes``: install only packages whose hashes are listed. ``measures_again``: run
    finished runs once more.
    """

    deployment: str
    measures_again: bool = False

    @property
    def budget(self) -> float | None:
        """Seconds that a call may measure for; None for a suite with a fixed number of repeats."""
        return self.time_budget or self.suite.time_budget

    @property
    def each_node(self) -> str | list[str] | None:
        """Nodes that are measured one by one: ``all``, names, or None for any node."""
        return self.nodes_named or self.suite.nodes_named

    @property
    def own_models(self) -> list[OwnModel]:
        """The user's own models: that of the configuration, or those of the suite's variants."""
        return [self.model] if self.model else self.suite.own_models


def load_settings(
    config: Mapping[str, Any], catalog: Catalog, methods: Collection[str] = ()
) -> Settings:
    """Check Snakemake's merged ``config`` and read its suite. ``methods``: of ``--sdm``.

    Raises :class:`ConfigError` with file, key, found value and allowed values.
    """
    if len(methods) > 1:
        raise ConfigError(
            f"--sdm: found {' '.join(sorted(methods))}; allowed: one of apptainer, conda, "
            "env-modules"
        )
    _check_credentials(config)
    context = ValidationContext(catalog, "".join(methods))
    sources = {"cluster": CLUSTER_SOURCE}
    if "cluster" in config:
        config = {**config, "cluster": of_kind(config["cluster"])}
    checked = validated(Configuration, config, context, SOURCE, sources)
    given = {**dict(checked), **_with_own_models(checked, catalog)}
    return Settings.model_construct(deployment=context.deployment, **given)


def _check_credentials(part: Any, key: str = "") -> None:
    """Raise :class:`ConfigError` for a text that looks like a credential, without showing it.

    It would appear in command lines and records.
    """
    if isinstance(part, Mapping):
        for name, value in part.items():
            inner = f"{key}.{name}" if key else str(name)
            _check_credentials(str(name), key)
            _check_credentials(value, inner)
    elif isinstance(part, list):
        for value in part:
            _check_credentials(value, key)
    elif isinstance(part, str) and (kind := secrets.kind_of(part)):
        raise ConfigError(f"{SOURCE}: {key}: found {kind}; allowed: {secrets.ADVICE}")


def _with_own_models(checked: Configuration, catalog: Catalog) -> dict[str, Any]:
    """Return the settings that a user's own models change: suite and models; {} without any.

    Raises :class:`ConfigError` for other ``models`` or ``frameworks`` next to them.
    """
    of_variants = checked.suite.own_models
    if checked.model and of_variants:
        raise ConfigError(
            f"{SOURCE}: model: found {checked.model.source} for suite {checked.suite.name}, whose "
            "variants name models; allowed: none"
        )
    models = [checked.model] if checked.model else of_variants
    if not models:
        return {}
    own_model = models[0]
    if {*checked.models} != {*catalog.models}:
        raise ConfigError(
            f"{SOURCE}: models: found {show(checked.models)} beside model; allowed: all, whose "
            "place it takes"
        )
    if own_model.framework not in checked.frameworks:
        raise ConfigError(
            f"{SOURCE}: frameworks: found {show(checked.frameworks)} "
            f"beside model={own_model.source}, which is one of {own_model.framework}; "
            f"allowed: all, or {own_model.framework}"
        )
    suite = of_own_model(checked.suite, own_model)
    return {"suite": suite, "models": [model.name for model in models]}
