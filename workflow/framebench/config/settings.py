"""``config/config.yaml``, ``--config`` and the suite file -> one checked :class:`Settings`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from . import values
from .catalog import Catalog
from .cluster import Cluster
from .fields import (
    MILLION,
    Allowed,
    Context,
    Count,
    Distinct,
    Folder,
    FrameworkName,
    FromList,
    FromText,
    Keys,
    MemoryLimit,
    ModelName,
    OneOf,
    OrAll,
    ReadAs,
    Records,
    Share,
    Side,
    Switch,
    Text,
    Whole,
    default,
    each_once,
    text,
    validated,
)
from .own_model import OwnModel, own_model
from .provided import ImageEntry, Interpreter, ModulesEntry
from .suite import Suite, load_suite
from .validation import ConfigError, NotAllowed, show

#: Where a configuration comes from, for messages.
SOURCE = "config (config/config.yaml or --config)"
CLUSTER_SOURCE = "config (profiles/slurm/cluster.yaml or another configfile)"
#: Of ``results``: what stands in it.
FOLDERS = ("runs", "logs", "tables", "parity", "probes", "reference", "largest_batch")


def _suite(name: str, info: ValidationInfo[Context]) -> Suite:
    return load_suite(name, info.context.catalog, info.data.get("kinds"))


def _own_model(source: str, info: ValidationInfo[Context]) -> OwnModel:
    return own_model(source, info.context.catalog)


def _results(folder: Path) -> Path:
    for name in FOLDERS:
        inner = values.path(str(folder / name))
        if inner.exists() and not inner.is_dir():
            shown = f"{show(str(inner))}, which is a file"
            raise NotAllowed("a folder, or nothing of that name", shown)
    return folder


_SUITE = text("a text: the name of a suite, or the path of a YAML file")
_OWN_MODEL = text(
    "the path of a Python file, torchvision:NAME or timm:NAME, without { and }", r"^[^{}]*$"
)
_Statuses = Annotated[
    list[Annotated[Literal["oom", "unsupported", "timeout", "failed"], OneOf()]],
    AfterValidator(each_once),
    FromList,
    Allowed("a list of oom, unsupported, timeout, failed, each value once"),
]


class Configuration(Keys):
    """The keys of the configuration."""

    kinds: Annotated[Path, ReadAs(Text, values.existing_folder)] | None = None
    suite: Annotated[Suite, ReadAs(_SUITE, _suite)] = default("quick")
    results: Annotated[Folder, AfterValidator(_results)] = default("results")
    records: Records | None = None
    base: Side | None = None
    candidate: Side | None = None
    fail_on: Share | None = None
    frameworks: Annotated[Distinct[FrameworkName], FromList, OrAll("frameworks")] = default("all")
    models: Annotated[Distinct[ModelName], FromList, OrAll("models")] = default("all")
    cases: Annotated[
        list[Text],
        AfterValidator(each_once),
        FromList,
        Allowed("a list of cases as the plan names them, each once"),
    ] = default([])
    model: Annotated[OwnModel, ReadAs(_OWN_MODEL, _own_model)] | None = None
    retry: Annotated[frozenset[str], ReadAs(_Statuses, frozenset)] = default([])
    rerun_disturbed: Annotated[int, Whole(0, 100), FromText] = 0
    side_by_side: Switch = False
    accelerator: Annotated[Literal["auto", "cpu", "cuda"], OneOf()] = "auto"
    cores_per_device: Annotated[
        Count | Literal["auto"],
        FromText,
        Allowed(f"auto, or a whole number of at least 1 and at most {MILLION}"),
    ] = "auto"
    time_limit: Annotated[
        float,
        Field(gt=0, le=31536000),
        FromText,
        Allowed("a number of seconds above 0 and up to a year (31536000)"),
    ] = 1800
    memory_limit: MemoryLimit = "auto"
    seed: Annotated[int, Whole(0, MILLION), FromText] = 0
    interpreters: Annotated[
        dict[FrameworkName, Interpreter], Allowed("a mapping from framework to path")
    ] = default({})
    cluster: Cluster | None = None
    images: Annotated[
        dict[FrameworkName, ImageEntry], Allowed("a mapping from framework to image")
    ] = default({})
    modules: Annotated[
        dict[FrameworkName, ModulesEntry], Allowed("a mapping from framework to list")
    ] = default({})
    environments: Folder = default(".venvs")
    node_local: Switch = False
    require_hashes: Switch = True

    @model_validator(mode="after")
    def _agreeing(self) -> Configuration:
        if self.side_by_side and self.cluster:
            raise NotAllowed(
                "false, because the scheduler shares devices out",
                "True beside cluster",
                "side_by_side",
            )
        if self.node_local and not self.environments.is_absolute():
            raise NotAllowed(
                "with node_local, the absolute path of a folder on a disk that every node has",
                show(str(self.environments)),
                "environments",
            )
        return self


class Settings(Configuration):
    """The checked configuration. ``accelerator`` and ``cores_per_device`` may still be ``auto``;
    ``time_limit`` is in seconds per run, ``memory_limit`` as the harness takes it, None for its own
    default. ``fail_on`` is a part (0.05 for 5 %). ``deployment``: what ``--sdm`` asks for, "" where
    it is not given. ``environments``: where environments are built, with ``node_local`` on each
    node; ``require_hashes``: only from files whose hashes stand beside the environment file."""

    deployment: str


def load_settings(
    config: Mapping[str, Any], catalog: Catalog, methods: Collection[str] = ()
) -> Settings:
    """Check Snakemake's merged ``config`` and read the suite that it names. ``methods``: what was
    given with ``--sdm``.

    Raises :class:`ConfigError` naming the file, the key, what was found and what is allowed.
    """
    if len(methods) > 1:
        raise ConfigError(
            f"--sdm: found {' '.join(sorted(methods))}; allowed: one of apptainer, conda, "
            "env-modules"
        )
    context = Context(catalog, "".join(methods))
    sources = {"cluster": CLUSTER_SOURCE}
    checked = validated(Configuration, dict(config), context, SOURCE, sources)
    alone = _with_own_model(checked, catalog) if checked.model else {}
    return Settings.model_construct(deployment=context.deployment, **{**dict(checked), **alone})


def _with_own_model(checked: Configuration, catalog: Catalog) -> dict[str, Any]:
    """What is another where a model of the user's own takes the place of all models. Raises
    :class:`ConfigError`."""
    own = checked.model
    assert own is not None, "asked for only where there is one"
    if {*checked.models} != {*catalog.models}:
        raise ConfigError(
            f"{SOURCE}: models: found {show(checked.models)} beside model; allowed: all, whose "
            "place it takes"
        )
    if own.framework not in checked.frameworks:
        raise ConfigError(
            f"{SOURCE}: frameworks: found {show(checked.frameworks)} beside model={own.source}, "
            f"which is one of {own.framework}; allowed: all, or {own.framework}"
        )
    return {"suite": own.alone(checked.suite), "models": [own.name]}
