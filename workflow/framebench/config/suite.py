"""Suites, read from ``config/suites/NAME.yaml`` and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from harness.kinds.largest_batch import largest_possible
from pydantic import Field, model_validator

from . import kinds
from .catalog import Catalog
from .keys import (
    Count,
    FrameworkName,
    Interpreter,
    Keys,
    NodesNamed,
    Seconds,
    Share,
    Text,
    Variables,
    default,
    matching,
    read_as,
    validated,
)
from .kinds import MODES, Measurement
from .own_model import OwnModel, OwnModelKey
from .repeats import AUTO, FIRST_LOOK, MOST_WITHIN_BUDGET, PAIRS, Repeats
from .suite_axes import Axes, AxesKeys, MatrixKeys, MeasurementKeys
from .tuned import FileName, Tuned, load_tuned
from .validation import ConfigError, NotAllowed, NotAmong, join, show
from .values import environment_file
from .yaml_files import find_suite, read_yaml

_Number = Annotated[int, Field(ge=1, le=1000)]


class Warmup(Keys):
    """Steps before the timed ones: until the step time has settled, at most ``at_most``. Without
    ``at_most``: ``at_least`` steps."""

    at_least: Count
    # Fewer steps cannot settle.
    at_most: Annotated[int, Field(ge=10, le=1_000_000)] | None

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
    seconds: Count | None


def _or_number(further: str) -> Any:
    """Return the reader of a number of steps, or a mapping with ``at_least`` and a ``further``
    key."""

    def read(written: Any) -> Any:
        if isinstance(written, int):
            return {"at_least": written, further: None}
        if isinstance(written, dict) and written.get(further, 1) is None:
            raise NotAllowed("a whole number", "None", further)
        return written

    return read_as(read, int | dict[str, int])


class Steps(Keys):
    """Steps of a run."""

    warmup: Annotated[Warmup, _or_number("at_most")]
    timed: Annotated[Timed, _or_number("seconds")]
    breakdown: bool = True


class GateRepeats(Keys):
    """Pairs of two variants: until each case is slower by more than ``margin`` or not, with
    ``two_sided`` also faster or not."""

    margin: Share
    at_most: _Number = PAIRS
    two_sided: bool = False

    @property
    def repeats(self) -> Repeats:
        first = min(self.at_most, FIRST_LOOK)
        return Repeats(first, self.at_most, None, self.margin, self.two_sided)


class BatchBounds(Keys):
    """Batches per device that a search tries, where ``batch_per_device`` is ``max``: multiples of
    ``multiple_of`` up to ``at_most``."""

    multiple_of: Count = 8
    at_most: Count = 4096

    @property
    def largest(self) -> int:
        """Largest batch within the bounds."""
        return largest_possible(self.multiple_of, self.at_most)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.largest:
            allowed = f"multiple_of, which is {self.multiple_of}, or more"
            raise NotAllowed(allowed, show(self.at_most), "at_most")
        return self


class Variant(Keys):
    """Side of an A/B test: settings that replace the defaults."""

    environments: dict[FrameworkName, Annotated[Path, read_as(environment_file)]] = default({})
    interpreters: dict[FrameworkName, Interpreter] = default({})
    variables: Variables = default({})
    tuned: FileName | None = None
    model: OwnModelKey | None = None


_VariantName = Annotated[
    str, matching("[A-Za-z0-9_.]{1,100}", "a name of at most 100 letters, digits, _ and .")
]
_Side = Annotated[Variant, read_as(lambda side: {} if side is None else side, Variant | None)]


class SuiteFile(Keys):
    """Keys of a suite file."""

    description: str = ""
    steps: Steps = default({"warmup": 20, "timed": 100})
    repeats: _Number | Literal["auto"] | GateRepeats = default(7)
    variants: dict[_VariantName, _Side] = default({})
    largest_batch: BatchBounds = default({})
    time_budget: Seconds | None = None
    time_limit: Seconds = 1800
    batch_check: Annotated[int, Field(ge=2, le=1000)] | None = None
    on_gpus: Text | None = None
    axes: MatrixKeys | None = None
    include: list[AxesKeys] = default([])
    then: list[AxesKeys] = default([])
    exclude: list[AxesKeys] = default([])
    measurements: dict[str, MeasurementKeys] = default({})
    nodes_named: NodesNamed | None = None

    @property
    def number_of_repeats(self) -> Repeats:
        """Number of repeats; a time budget decides it, up to ``repeats``."""
        written = self.repeats
        if isinstance(written, GateRepeats):
            return written.repeats
        if isinstance(written, str):
            return AUTO
        if self.time_budget is None:
            return Repeats(written, written, None)
        is_named = "repeats" in self.model_fields_set
        return Repeats(1, written if is_named else MOST_WITHIN_BUDGET, None)

    @property
    def _blocks(self) -> Iterator[tuple[str, AxesKeys]]:
        """All blocks of axes, by their keys."""
        if self.axes:
            yield "axes", self.axes
        for key in ("include", "then", "exclude"):
            yield from ((f"{key}[{n}]", block) for n, block in enumerate(getattr(self, key)))
        yield from ((f"measurements.{kind}", block) for kind, block in self.measurements.items())

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.axes is None and not self.measurements:
            raise NotAllowed("axes, measurements, or both", "neither axes nor measurements")
        for key in ("include", "then"):
            if self.axes is None and getattr(self, key):
                raise NotAllowed("none without axes", "some", key)
        if self.axes and self.axes.batch_per_device is None and self.axes.batch_total is None:
            allowed = "batch_per_device, or batch_total"
            raise NotAllowed(allowed, "no batch", "axes")
        return self

    @model_validator(mode="after")
    def _known_modes(self) -> Self:
        for key, block in self._blocks:
            known = [*MODES, *self.measurements] if key.startswith("exclude") else MODES
            for number, mode in enumerate(block.given.get("mode", ())):
                if mode not in known:
                    raise NotAmong(mode, known, f"{key}.mode[{number}]")
        return self

    @model_validator(mode="after")
    def _within_a_budget(self) -> Self:
        """Check the keys that a time budget goes with."""
        keys = ("then", "batch_check") if self.time_budget is None else ("variants", "measurements")
        for key in keys:
            if getattr(self, key):
                with_or_without = "none without" if self.time_budget is None else "none beside"
                raise NotAllowed(f"{with_or_without} time_budget", "some", key)
        if self.time_budget and not isinstance(self.repeats, int):
            allowed = "a whole number beside time_budget: the most repeats"
            raise NotAllowed(allowed, "a rule", "repeats")
        return self

    @model_validator(mode="after")
    def _sides_that_compare(self) -> Self:
        if self.number_of_repeats.margin is not None and len(self.variants) != 2:
            allowed = "two, of which the first is the base"
            raise NotAllowed(allowed, ", ".join(self.variants) or "none", "variants")
        own = {name: variant.model for name, variant in self.variants.items()}
        if len({model.framework if model else None for model in own.values()}) > 1:
            sources = (f"{name}: {model.source if model else None}" for name, model in own.items())
            allowed = "a model of the same framework in each, or in none"
            raise NotAllowed(allowed, ", ".join(sources), "variants")
        return self


@dataclass(frozen=True)
class Suite:
    """A named matrix and its file.

    ``path``: the file in messages, relative to the project for a shipped suite; ``file``: its
    absolute path; ``gpu_suite``: the suite that replaces it on GPUs; ``tuned``: files of settings
    that variants use, by name; ``own_model``: name of the user's model that replaces those of the
    suite, or of the first variant's. Others: as :class:`SuiteFile` has them.
    """

    path: Path
    file: Path
    description: str
    steps: Steps
    repeats: Repeats
    variants: Mapping[str, Variant]
    largest_batch: BatchBounds
    time_budget: float | None
    time_limit: float
    batch_check: int | None
    nodes_named: list[str] | None
    axes: Axes | None
    include: list[Axes]
    then: list[Axes]
    exclude: list[Axes]
    measurements: Mapping[str, Measurement]
    gpu_suite: Suite | None
    tuned: Tuned = field(default_factory=dict)
    own_model: str = ""

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def own_models(self) -> list[OwnModel]:
        """The user's own models that variants name."""
        return [variant.model for variant in self.variants.values() if variant.model]

    @property
    def warmup_steps(self) -> int:
        return self.steps.warmup.at_least

    @property
    def warmup_limit(self) -> int | None:
        return self.steps.warmup.at_most

    @property
    def timed_steps(self) -> int:
        return self.steps.timed.at_least

    @property
    def timed_seconds(self) -> int | None:
        """Seconds of the timed region; None for ``timed_steps`` and no more."""
        return self.steps.timed.seconds


def load_suite(name: str, catalog: Catalog, folders: Mapping[str, Path] = {}) -> Suite:
    """Read and check a suite: a name in ``config/suites/``, or the path of a YAML file.
    ``folders``: see :func:`kinds.measurement`.

    Raises :class:`NotAllowed` for an unknown suite, ConfigError for an invalid one.
    """
    file = find_suite(name, catalog.root)
    shown = file.relative_to(catalog.root) if file.is_relative_to(catalog.root) else file
    written = validated(SuiteFile, read_yaml(file), str(shown), catalog)
    gpu_suite = None
    if written.on_gpus:
        try:
            gpu_suite = load_suite(written.on_gpus, catalog, folders)
        except NotAllowed as error:
            raise ConfigError(f"{shown}: {error.line('on_gpus', written.on_gpus)}") from None
    tuned = {variant.tuned for variant in written.variants.values() if variant.tuned}
    return Suite(
        shown,
        file.absolute(),
        written.description,
        written.steps,
        written.number_of_repeats,
        written.variants,
        written.largest_batch,
        written.time_budget,
        written.time_limit,
        written.batch_check,
        written.nodes_named,
        written.axes.every if written.axes else None,
        [block.given for block in written.include],
        [block.given for block in written.then],
        [block.given for block in written.exclude],
        _measurements(written, catalog, folders, str(shown)),
        gpu_suite,
        {name: load_tuned(catalog, name) for name in tuned},
    )


def _measurements(
    written: SuiteFile, catalog: Catalog, folders: Mapping[str, Path], source: str
) -> dict[str, Measurement]:
    """Return the benchmarks of a suite. Raises ConfigError."""
    usual = MatrixKeys.model_validate({}, context=catalog).every
    if written.axes:
        usual = written.axes.every
    results = {}
    for kind, keys in written.measurements.items():
        axes = {
            axis: values for axis, values in keys.given.items() if axis in AxesKeys.model_fields
        }
        others = {name: value for name, value in keys.given.items() if name not in axes}
        try:
            results[kind] = kinds.measurement(kind, axes, usual, others, catalog, folders)
        except NotAllowed as error:
            key = f"{join('measurements', kind)}.{error.key}".rstrip(".")
            raise ConfigError(
                f"{source}: {key}: found {error.shown or 'nothing'}; allowed: {error.allowed}"
            ) from None
    return results
