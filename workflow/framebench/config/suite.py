"""Suites, read from ``config/suites/NAME.yaml`` and checked; tuned settings of their variants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from core.case import Case
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from .. import PROJECT
from ..statistics.verdicts import FIRST_LOOK, PAIRS
from . import measurements, validation
from .catalog import Catalog, OwnModel
from .keys import (
    Count,
    FrameworkName,
    Interpreter,
    KeyContext,
    Keys,
    NodesNamed,
    OwnModelKey,
    Seconds,
    Share,
    Text,
    Variables,
    default,
    matching,
    read_yaml,
    validated,
)
from .measurements import (
    BATCHES,
    Axes,
    AxesKeys,
    MatrixKeys,
    Measurement,
    MeasurementKeys,
    PatternKeys,
)
from .validation import NotAllowed, did_you_mean, show

#: Default number of repeats, and default of the most repeats within a time budget.
USUAL, MOST_WITHIN_BUDGET = 7, 30
#: Folder of tuned settings, and NAMEs of its files ``tuned_NAME.yaml`` with published settings.
TUNED, _PUBLISHED = Path("config"), ("nvidia", "dlperf")

_Number = Annotated[int, Field(ge=1, le=1000)]


@dataclass(frozen=True)
class Repeats:
    """Number of repeats of a case. ``margin``: margin of a performance gate, which repeats a case
    until it is decided whether it is slower by more than the margin, and with ``two_sided`` also
    whether it is faster. ``at_most`` exceeds ``at_least`` in gates and time budgets only."""

    at_least: int
    at_most: int
    margin: float | None = None
    two_sided: bool = False

    def __str__(self) -> str:
        least, most = self.at_least, self.at_most
        return str(least) if least == most else f"{least} to {most}"


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
    """Timed steps: ``at_least`` or more and, if ``seconds`` is given, for about that time."""

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
    """Pairs of two variants, measured until it is decided whether each case is slower by more than
    ``margin``, and with ``two_sided`` also whether it is faster."""

    margin: Share
    at_most: _Number = PAIRS
    two_sided: bool = False


class BatchBounds(Keys):
    """Batches per device that a search tries, where ``batch_per_device`` is ``max``: multiples of
    ``multiple_of`` up to ``at_most``."""

    multiple_of: Count = 8
    at_most: Count = 4096


class TunedSetting(Keys):
    """Setting by environment variables. ``effect``: a sentence on what it changes."""

    variables: Variables
    cases: PatternKeys | None = None
    accelerators: list[Literal["cpu", "cuda"]] = default(["cpu", "cuda"])
    effect: Text
    source: Text

    def is_for(self, case: Case, accelerator: str) -> bool:
        """Return whether the setting is for a case: its accelerator and all axes match."""
        given = self.cases.named_axes if self.cases else {}
        has_all = all(getattr(case, axis) in values for axis, values in given.items())
        return has_all and accelerator in self.accelerators


class TunedFile(Keys):
    """Settings by framework, of which ``all`` are for every framework: ``config/tuned.yaml`` makes
    frameworks faster, ``config/tuned_NAME.yaml`` has those of published benchmarks."""

    all: list[TunedSetting] = default([])
    frameworks: dict[FrameworkName, list[TunedSetting]] = default({})

    def variables(self, case: Case, accelerator: str) -> dict[str, str]:
        """Return the variables for a case; settings of its framework override those of ``all``."""
        return {
            name: value
            for setting in (*self.all, *self.frameworks.get(case.framework, ()))
            if setting.is_for(case, accelerator)
            for name, value in setting.variables.items()
        }


def load_tuned(catalog: Catalog, name: str) -> TunedFile:
    """Return a file of tuned settings. Raises ConfigError for a missing or invalid file."""
    file = TUNED / f"{name}.yaml"
    return validated(TunedFile, read_yaml(catalog.root / file), str(file), catalog)


def _tuned(written: Any, info: ValidationInfo[KeyContext]) -> TunedFile | None:
    if written is False:
        return None
    if written is not True and written not in _PUBLISHED:
        raise NotAllowed(f"true, false, {', '.join(_PUBLISHED)}")
    return load_tuned(info.context.catalog, "tuned" if written is True else f"tuned_{written}")


def _environment_file(written: Any) -> Path:
    """Return the path of an environment file, or of the one with this name in ``envs``."""
    named, ours = validation.path(written), PROJECT / "envs" / str(written)
    if os.path.isfile(named):
        return named
    if "/" in written or not ours.is_file():
        raise NotAllowed("the path of an environment file, or the name of one in envs/")
    return ours


class Variant(Keys):
    """Side of an A/B test: settings that replace the defaults."""

    environments: dict[FrameworkName, Annotated[Path, BeforeValidator(_environment_file)]] = (
        default({})
    )
    interpreters: dict[FrameworkName, Interpreter] = default({})
    variables: Variables = default({})
    tuned: Annotated[TunedFile | None, BeforeValidator(_tuned)] | None = None
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
            allowed = "a whole number together with time_budget: the most repeats"
            raise NotAllowed(allowed, "a margin")
        return Repeats(1, written or MOST_WITHIN_BUDGET)
    if isinstance(written, GateRepeats):
        first = min(written.at_most, FIRST_LOOK)
        return Repeats(first, written.at_most, written.margin, written.two_sided)
    return Repeats(written or USUAL, written or USUAL)


def _declared(
    written: Mapping[str, Axes], info: ValidationInfo[KeyContext]
) -> dict[str, Measurement]:
    """Return the benchmarks of a suite; axes that they leave out have the suite's values."""
    defaults = info.data.get("axes") or MatrixKeys.model_validate({}, context=info.context).every
    results = {}
    for kind, given in written.items():
        try:
            results[kind] = measurements.measurement(kind, given, defaults, info.context)
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
        """Check the keys that need a time budget, and those that exclude one."""
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
    """A suite. ``file``: file that it was read from; ``own_model``: name of the user's own model
    that replaces the suite's models; if variants have different ones, of the first."""

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
    """Read and check a suite: a name in ``config/suites/``, or the path of a YAML file. Raises
    :class:`NotAllowed` for an unknown suite, ConfigError for an invalid one."""
    folder = catalog.root / "config" / "suites"
    by_path = name.endswith((".yaml", ".yml"))
    path = validation.path(name if by_path else str(folder / f"{name}.yaml"))
    if not path.is_file():
        known = sorted(file.stem for file in folder.glob("*.yaml"))
        shown = show(name) + did_you_mean(name, known)
        raise NotAllowed(f"{', '.join(known)}, or the path of a YAML file", shown)
    suite = Suite.model_construct(file=path)
    written = validated(SuiteFile, read_yaml(suite.file), str(suite.path), catalog, folders=folders)
    return suite.model_copy(update=dict(written))
