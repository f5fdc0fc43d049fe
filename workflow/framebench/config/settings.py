"""Settings from ``config/config.yaml``, ``--config`` and the suite file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from . import validation
from .catalog import Catalog, OwnModel
from .cluster import Cluster
from .keys import (
    MILLION,
    Count,
    Folder,
    FrameworkName,
    Frameworks,
    ImageEntry,
    Interpreter,
    KeyContext,
    KeysFromTexts,
    Models,
    NodesNamed,
    OwnModelKey,
    Pin,
    Seconds,
    Text,
    as_list,
    default,
    each_once,
    validated,
)
from .measurements import BANDWIDTHS, INDEPENDENT, Axes
from .statuses import FAILURES
from .suite import Suite, load_suite
from .validation import ConfigError, NotAllowed, show

#: Source of the configuration, for messages.
SOURCE = "config (config/config.yaml, profiles/slurm/cluster.yaml or --config)"


def _suite(written: Any, info: ValidationInfo[KeyContext]) -> Suite:
    keys = ("kinds", "storage", "data", "results")
    folders = {key: info.data[key] for key in keys if info.data.get(key)}
    return load_suite(str(written), info.context.catalog, folders)


if TYPE_CHECKING:
    _Status = str
else:
    _Status = Literal[tuple(FAILURES)]


class Configuration(KeysFromTexts):
    """Keys of the configuration."""

    kinds: Annotated[Path, BeforeValidator(validation.existing_folder)] | None = None
    storage: Annotated[Path, BeforeValidator(validation.existing_folder)] | None = None
    data: Folder | None = None
    results: Folder = default("results")
    suite: Annotated[Suite, BeforeValidator(_suite)] = default("quick")
    records: Annotated[Path, BeforeValidator(validation.record_set)] | None = None
    nodes_named: NodesNamed | None = None
    frameworks: Frameworks = default("all")
    models: Models = default("all")
    cases: Annotated[list[Text], AfterValidator(each_once), BeforeValidator(as_list)] = default([])
    model: OwnModelKey | None = None
    retry: Annotated[frozenset[_Status], BeforeValidator(as_list)] = default([])
    side_by_side: bool = False
    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    cores_per_device: Count | Literal["auto"] = "auto"
    time_budget: Seconds | None = None
    time_limit: Seconds | None = None
    memory_limit: Annotated[str | None, BeforeValidator(validation.memory_limit)] = "auto"
    seed: Annotated[int, Field(ge=0, le=MILLION)] = 0
    interpreters: dict[FrameworkName, Interpreter] = default({})
    cluster: Cluster | None = None
    images: dict[FrameworkName, ImageEntry] = default({})
    packages: dict[FrameworkName, list[Pin]] = default({})
    environments: Folder = default(".venvs")
    require_hashes: bool = True

    @model_validator(mode="after")
    def _agreeing(self) -> Self:
        name = self.suite.name
        for key, example in (
            ("nodes_named", "a suite that measures each node, such as node_health"),
            ("time_budget", "a suite that has a time_budget, such as quick"),
        ):
            if getattr(self, key) and not getattr(self.suite, key):
                allowed = f"nothing for suite {name}; it needs {example}"
                raise NotAllowed(allowed, show(getattr(self, key)), key)
        if self.side_by_side and self.cluster:
            allowed = "false, because the scheduler assigns devices"
            raise NotAllowed(allowed, "True beside cluster", "side_by_side")
        return self

    @model_validator(mode="after")
    def _with_own_models(self, info: ValidationInfo[KeyContext]) -> Self:
        """Return the configuration with the user's own models, if any, in place of the suite's."""
        models = [self.model] if self.model else self.suite.own_models
        if not models:
            return self
        own_model, every = models[0], info.context.catalog.models
        if self.model and self.suite.own_models:
            allowed = f"none for suite {self.suite.name}, whose variants name models"
            raise NotAllowed(allowed, own_model.source, "model")
        if {*self.models} != {*every}:
            raise NotAllowed("all beside model", show(self.models), "models")
        if own_model.framework not in self.frameworks:
            allowed = f"all, or {own_model.framework}, the framework of {own_model.source}"
            raise NotAllowed(allowed, show(self.frameworks), "frameworks")
        suite = _with_own_model(self.suite, own_model)
        return self.model_copy(update={"suite": suite, "models": [model.name for model in models]})


class Settings(Configuration):
    """The checked configuration. ``accelerator`` and ``cores_per_device`` may still be ``auto``.
    ``deployment``: method of ``--sdm``, "" without one; ``measures_again``: run finished runs once
    more."""

    deployment: str
    measures_again: bool = False

    @property
    def budget(self) -> float | None:
        """Seconds that a call may measure for; None for a suite with a fixed number of repeats."""
        return self.time_budget or self.suite.time_budget

    @property
    def seconds_per_run(self) -> float:
        """Seconds after which a run is killed: by default no more than the time budget."""
        return self.time_limit or min(self.suite.time_limit, self.budget or self.suite.time_limit)

    @property
    def run_limit(self) -> float:
        """Seconds after which a run ends by itself."""
        seconds = self.seconds_per_run
        return self.cluster.run_limit(seconds) if self.cluster else seconds

    @property
    def each_node(self) -> list[str] | None:
        """Nodes that are measured one by one: ``["all"]``, names, or None for any node."""
        return self.nodes_named or self.suite.nodes_named

    @property
    def own_models(self) -> list[OwnModel]:
        """The user's own model of the configuration, or those of the suite's variants."""
        return [self.model] if self.model else self.suite.own_models


def load_settings(
    config: Mapping[str, Any], catalog: Catalog, methods: Collection[str] = ()
) -> Settings:
    """Check Snakemake's merged ``config`` and read its suite. ``methods``: methods of ``--sdm``.

    Raises :class:`ConfigError` with file, key, found value and allowed values.
    """
    deployment = " ".join(sorted(methods))
    if deployment not in ("", "apptainer", "conda"):
        raise ConfigError(f"--sdm: found {deployment}; allowed: apptainer, or conda")
    checked = validated(Configuration, config, SOURCE, catalog)
    return Settings.model_construct(deployment=deployment, **dict(checked))


def _with_own_model(suite: Suite, own_model: OwnModel) -> Suite:
    """Return the suite with a user's model instead of all models and frameworks.

    The suite keeps its axes. Of its benchmarks it keeps only the control of a scaling series and
    those of memory bandwidth. Raises ConfigError for a suite without axes.
    """
    if suite.axes is None:
        raise ConfigError(
            f"{suite.path}: axes: found none; allowed with model={own_model.source}: "
            "a suite with axes"
        )
    names: Axes = {"framework": [own_model.framework], "model": [own_model.name]}

    def replaced(block: Axes) -> Axes:
        return {
            axis: names.get(axis, _values_of_all_models(entry)) for axis, entry in block.items()
        }

    further = [
        replaced(block)
        for block in (*suite.include, *suite.then)
        if own_model.framework in {**names, **block}["framework"]
    ]
    of_model = {
        "axes": {**replaced(suite.axes), **names},
        "include": further,
        "then": [],  # its blocks are in ``include``, so that each runs before any is repeated
        "exclude": [entry for entry in suite.exclude if "model" not in entry],
        "measurements": {
            kind: replace(old, axes={name: names.get(name, own) for name, own in old.axes.items()})
            for kind, old in suite.measurements.items()
            if kind in (INDEPENDENT, *BANDWIDTHS)
        },
        "own_model": own_model.name,
        "on_gpus": suite.on_gpus and _with_own_model(suite.on_gpus, own_model),
    }
    return suite.model_copy(update=of_model)


def _values_of_all_models(values: Any) -> Any:
    """Return the values of an axis; batches by model become one list of all batches."""
    if not isinstance(values, dict):
        return values
    return list(dict.fromkeys(value for some in values.values() for value in some))
