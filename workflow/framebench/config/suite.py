"""Suites, read from ``config/suites/NAME.yaml`` and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from .. import PROJECT
from . import kinds
from .catalog import Catalog
from .keys import (
    Count,
    FrameworkName,
    Interpreter,
    KeyContext,
    Keys,
    NodesNamed,
    Seconds,
    Share,
    Variables,
    default,
    matching,
    validated,
)
from .kinds import Measurement
from .own_model import OwnModel, OwnModelKey
from .repeats import FIRST_LOOK, MOST_WITHIN_BUDGET, PAIRS, USUAL, Repeats
from .suite_axes import BATCHES, Axes, AxesKeys, MatrixKeys, MeasurementKeys, PatternKeys
from .tuned import TunedKey
from .validation import NotAllowed, show
from .values import environment_file
from .yaml_files import find_suite, read_yaml

_Number = Annotated[int, Field(ge=1, le=1000)]


class Warmup(Keys):
    """Steps before the timed ones: until the step time has settled, at most ``at_most``. Without
    ``at_most``: ``at_least`` steps."""

    at_least: Count
    # Fewer steps cannot settle.
    at_most: Annotated[int, Field(ge=10, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.at_most is not None and self.at_most < self.at_least:
            allowed = f"at_least, which is {self.at_least}, or more"
            raise NotAllowed(allowed, show(self.at_most), "at_most")
        return self


class Timed(Keys):
    """Timed steps: ``at_least``, and as many as take about ``seconds``. Without ``seconds``:
    ``at_least`` steps."""

    at_least: Count
    seconds: Count | None = None


_or_number = BeforeValidator(
    lambda written: {"at_least": written} if isinstance(written, int) else written
)


class Steps(Keys):
    """Steps of a run."""

    warmup: Annotated[Warmup, _or_number]
    timed: Annotated[Timed, _or_number]


class GateRepeats(Keys):
    """Pairs of two variants: until each case is slower by more than ``margin`` or not, with
    ``two_sided`` also faster or not."""

    margin: Share
    at_most: _Number = PAIRS
    two_sided: bool = False


class BatchBounds(Keys):
    """Batches per device that a search tries, where ``batch_per_device`` is ``max``: multiples of
    ``multiple_of`` up to ``at_most``."""

    multiple_of: Count = 8
    at_most: Count = 4096


_EnvironmentFile = Annotated[Path, BeforeValidator(environment_file)]


class Variant(Keys):
    """Side of an A/B test: settings that replace the defaults."""

    environments: dict[FrameworkName, _EnvironmentFile] = default({})
    interpreters: dict[FrameworkName, Interpreter] = default({})
    variables: Variables = default({})
    tuned: TunedKey | None = None
    model: OwnModelKey | None = None


_VariantName = Annotated[
    str, matching("[A-Za-z0-9_.]{1,100}", "a name of at most 100 letters, digits, _ and .")
]
_Side = Annotated[Variant, BeforeValidator(lambda side: {} if side is None else side)]


def _number_of_repeats(
    written: int | GateRepeats | None, info: ValidationInfo[KeyContext]
) -> Repeats:
    """Return the number of repeats; a time budget decides it, up to the written number."""
    if info.data.get("time_budget") is not None:
        if isinstance(written, GateRepeats):
            raise NotAllowed(
                "a whole number together with time_budget: the most repeats", "a margin"
            )
        return Repeats(1, written or MOST_WITHIN_BUDGET)
    if isinstance(written, GateRepeats):
        first = min(written.at_most, FIRST_LOOK)
        return Repeats(first, written.at_most, written.margin, written.two_sided)
    return Repeats(written or USUAL, written or USUAL)


def _declared(
    written: Mapping[str, Axes], info: ValidationInfo[KeyContext]
) -> dict[str, Measurement]:
    """Return the benchmarks of a suite; axes that a benchmark leaves out have the suite's
    values."""
    usual = info.data.get("axes") or MatrixKeys.model_validate({}, context=info.context).every
    results = {}
    for kind, given in written.items():
        axes = {name: values for name, values in given.items() if name in AxesKeys.model_fields}
        others = {name: value for name, value in given.items() if name not in axes}
        try:
            results[kind] = kinds.measurement(kind, axes, usual, others, info.context)
        except NotAllowed as error:
            key = f"{kind}.{error.key}" if error.key else kind
            raise NotAllowed(error.allowed, error.shown or "nothing", key) from None
    return results


if TYPE_CHECKING:
    _Repeats = Repeats
    _Matrix = Axes
    _Block = Axes
    _Pattern = Axes
    _Measurements = Mapping[str, Measurement]
else:
    _Repeats = Annotated[_Number | GateRepeats | None, AfterValidator(_number_of_repeats)]
    _Matrix = Annotated[MatrixKeys, AfterValidator(lambda block: block.every)]
    _Block = Annotated[AxesKeys, AfterValidator(lambda block: block.named_axes)]
    _Pattern = Annotated[PatternKeys, AfterValidator(lambda block: block.named_axes)]
    _Measurements = Annotated[
        dict[str, Annotated[MeasurementKeys, AfterValidator(lambda block: block.named_axes)]],
        AfterValidator(_declared),
    ]


def _other_suite(written: Any, info: ValidationInfo[KeyContext]) -> Suite:
    return load_suite(str(written), info.context.catalog, info.context.folders)


class SuiteFile(Keys):
    """Keys of a suite file."""

    description: str = ""
    steps: Steps = default({"warmup": 20, "timed": 100})
    time_budget: Seconds | None = None
    repeats: _Repeats = default(None)
    variants: dict[_VariantName, _Side] = default({})
    largest_batch: BatchBounds = default({})
    time_limit: Seconds = 1800
    batch_check: Annotated[int, Field(ge=2, le=1000)] | None = None
    on_gpus: Annotated[Suite, BeforeValidator(_other_suite)] | None = None
    axes: _Matrix | None = None
    include: list[_Block] = default([])
    then: list[_Block] = default([])
    exclude: list[_Pattern] = default([])
    measurements: _Measurements = default({})
    nodes_named: NodesNamed | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        axes = self.axes
        if axes is None and not self.measurements:
            raise NotAllowed("axes, measurements, or both", "neither axes nor measurements")
        if axes is None and (self.include or self.then):
            raise NotAllowed("axes together with include and then", "no axes")
        if axes is not None and not {*BATCHES} & {*axes}:
            raise NotAllowed(", or ".join(BATCHES), "no batch", "axes")
        return self

    @model_validator(mode="after")
    def _within_a_budget(self) -> Self:
        """Check the keys that a time budget goes with."""
        keys = ("then", "batch_check") if self.time_budget is None else ("variants", "measurements")
        for key in keys:
            if getattr(self, key):
                with_or_without = "none without" if self.time_budget is None else "none beside"
                raise NotAllowed(f"{with_or_without} time_budget", "some", key)
        return self

    @model_validator(mode="after")
    def _sides_that_compare(self) -> Self:
        if self.repeats.margin is not None and len(self.variants) != 2:
            allowed = "two, of which the first is the base"
            raise NotAllowed(allowed, ", ".join(self.variants) or "none", "variants")
        own = {name: variant.model for name, variant in self.variants.items()}
        if len({model.framework if model else None for model in own.values()}) > 1:
            sources = (f"{name}: {model.source if model else None}" for name, model in own.items())
            allowed = "a model of the same framework in each, or in none"
            raise NotAllowed(allowed, ", ".join(sources), "variants")
        return self


class Suite(SuiteFile):
    """A suite. ``file``: that it was read from; ``own_model``: name of the user's model that
    replaces those of the suite, or of the first variant's."""

    file: Path
    own_model: str = ""

    @property
    def path(self) -> Path:
        """The file in messages: relative to the project for a shipped suite."""
        return self.file.relative_to(PROJECT) if self.file.is_relative_to(PROJECT) else self.file

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def own_models(self) -> list[OwnModel]:
        """The user's own models that variants name."""
        return [variant.model for variant in self.variants.values() if variant.model]


def load_suite(name: str, catalog: Catalog, folders: Mapping[str, Path] = {}) -> Suite:
    """Read and check a suite: a name in ``config/suites/``, or the path of a YAML file.
    ``folders``: see :class:`keys.KeyContext`.

    Raises :class:`NotAllowed` for an unknown suite, ConfigError for an invalid one.
    """
    suite = Suite.model_construct(file=find_suite(name, catalog.root))
    written = validated(SuiteFile, read_yaml(suite.file), str(suite.path), catalog, folders=folders)
    return suite.model_copy(update=dict(written))
