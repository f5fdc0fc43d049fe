"""Settings from ``config/config.yaml``, ``--config`` and the suite file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from . import values
from .catalog import Catalog
from .cluster import Cluster, of_kind
from .keys import (
    MILLION,
    Count,
    Folder,
    FrameworkName,
    Frameworks,
    ImageEntry,
    Interpreter,
    KeysFromTexts,
    Models,
    ModulesEntry,
    NodesNamed,
    Pin,
    Seconds,
    Text,
    as_list,
    default,
    each_once,
    read_as,
    validated,
)
from .kinds import BANDWIDTHS, INDEPENDENT
from .own_model import OwnModel, OwnModelKey
from .statuses import FAILURES
from .suite import Suite, load_suite
from .suite_axes import Axes
from .validation import ConfigError, NotAllowed, show

#: Source of the configuration, for messages.
SOURCE = "config (config/config.yaml or --config)"
CLUSTER_SOURCE = "config (profiles/slurm/cluster.yaml or another configfile)"


def _suite(written: Any, info: ValidationInfo[Catalog]) -> Suite:
    if not isinstance(written, str) or not written:
        raise NotAllowed("a text: the name of a suite, or the path of a YAML file")
    given = {key: info.data.get(key) for key in ("kinds", "storage", "data", "results")}
    folders = {key: folder for key, folder in given.items() if folder}
    return load_suite(written, info.context, folders)


if TYPE_CHECKING:
    _Status = str
else:
    _Status = Literal[tuple(FAILURES)]


class Configuration(KeysFromTexts):
    """Keys of the configuration."""

    kinds: Annotated[Path, read_as(values.existing_folder)] | None = None
    storage: Annotated[Path, read_as(values.existing_folder)] | None = None
    data: Folder | None = None
    results: Folder = default("results")
    suite: Annotated[Suite, read_as(_suite)] = default("quick")
    records: Annotated[Path, read_as(values.record_set)] | None = None
    nodes_named: NodesNamed | None = None
    frameworks: Frameworks = default("all")
    models: Models = default("all")
    cases: Annotated[list[Text], AfterValidator(each_once), read_as(as_list, Any)] = default([])
    model: OwnModelKey | None = None
    retry: Annotated[frozenset[_Status], read_as(as_list, Any)] = default([])
    rerun_disturbed: Annotated[int, Field(ge=0, le=100)] = 0
    side_by_side: bool = False
    emulated: Literal["skip", "measure"] = "skip"
    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    cores_per_device: Count | Literal["auto"] = "auto"
    time_budget: Seconds | None = None
    time_limit: Seconds | None = None
    memory_limit: Annotated[str | None, read_as(values.memory_limit)] = "auto"
    seed: Annotated[int, Field(ge=0, le=MILLION)] = 0
    interpreters: dict[FrameworkName, Interpreter] = default({})
    cluster: Cluster | None = None
    images: dict[FrameworkName, ImageEntry] = default({})
    modules: dict[FrameworkName, ModulesEntry] = default({})
    packages: dict[FrameworkName, list[Pin]] = default({})
    environments: Folder = default(".venvs")
    require_hashes: bool = True
    yes: bool = False

    @model_validator(mode="after")
    def _agreeing(self) -> Self:
        name = self.suite.name
        for key, example in (
            ("nodes_named", "one that measures each node, such as node_health"),
            ("time_budget", "one that has a time_budget, such as quick"),
        ):
            if getattr(self, key) and not getattr(self.suite, key):
                allowed = f"nothing for suite {name}; with {example}"
                raise NotAllowed(allowed, show(getattr(self, key)), key)
        if self.side_by_side and self.cluster:
            allowed = "false, because the scheduler shares devices out"
            raise NotAllowed(allowed, "True beside cluster", "side_by_side")
        return self


class Settings(Configuration):
    """The checked configuration.

    ``accelerator`` and ``cores_per_device`` may still be ``auto``; ``memory_limit`` is in the
    harness's form, None without one. ``deployment``: method of ``--sdm``, "" without one.
    ``environments``: folder of environments; ``require_hashes``: install only packages whose hashes
    are listed. ``measures_again``: run finished runs once more.
    """

    deployment: str
    measures_again: bool = False

    @property
    def budget(self) -> float | None:
        """Seconds that a call may measure for; None for a suite with a fixed number of repeats."""
        return self.time_budget or self.suite.time_budget

    @property
    def seconds_per_run(self) -> float:
        """Seconds after which a run is killed."""
        return self.time_limit or self.suite.time_limit

    @property
    def each_node(self) -> list[str] | None:
        """Nodes that are measured one by one: ``["all"]``, names, or None for any node."""
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
    if "cluster" in config:
        config = {**config, "cluster": of_kind(config["cluster"])}
    checked = validated(Configuration, config, SOURCE, catalog, {"cluster": CLUSTER_SOURCE})
    given = {**dict(checked), **_with_own_models(checked, catalog)}
    return Settings.model_construct(deployment="".join(methods), **given)


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
    suite = _of_own_model(checked.suite, own_model)
    return {"suite": suite, "models": [model.name for model in models]}


def _of_own_model(suite: Suite, own_model: OwnModel) -> Suite:
    """Return the suite with a user's model instead of all models and frameworks.

    The suite keeps its axes and, of other benchmarks, the control of scaling and the bandwidth of
    memory. Raises ConfigError for a suite without axes.
    """
    if suite.axes is None:
        raise ConfigError(
            f"{suite.path}: axes: found none; allowed with model={own_model.source}: "
            "a suite with axes"
        )
    names: Axes = {"framework": [own_model.framework], "model": [own_model.name]}

    def replaced(block: Axes) -> Axes:
        return {axis: names.get(axis, _of_any_model(entry)) for axis, entry in block.items()}

    def kept(blocks: Sequence[Axes]) -> list[Axes]:
        of_framework = [own_model.framework]
        return [
            replaced(block)
            for block in blocks
            if own_model.framework in block.get("framework", of_framework)
        ]

    return replace(
        suite,
        axes={**replaced(suite.axes), **names},
        include=kept([*suite.include, *suite.then]),
        then=[],  # each combination is tried before any is repeated
        exclude=[entry for entry in suite.exclude if "model" not in entry],
        measurements={
            kind: replace(one, axes={name: names.get(name, own) for name, own in one.axes.items()})
            for kind, one in suite.measurements.items()
            if kind in (INDEPENDENT, *BANDWIDTHS)
        },
        own_model=own_model.name,
        gpu_suite=suite.gpu_suite and _of_own_model(suite.gpu_suite, own_model),
    )


def _of_any_model(values: Any) -> Any:
    """Return the values of an axis; batches by model become the batches of all."""
    if not isinstance(values, dict):
        return values
    return list(dict.fromkeys(value for some in values.values() for value in some))
