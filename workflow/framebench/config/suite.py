"""Suites, read from ``config/suites/NAME.yaml`` and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    StringConstraints,
    Tag,
    ValidationInfo,
    model_validator,
)

from . import suite_files
from .allocators import Allocator
from .catalog import Catalog
from .fields import (
    MILLION,
    AllowedValues,
    Count,
    EnvironmentPath,
    FrameworkName,
    Keys,
    NodesNamed,
    ReadAs,
    Seconds,
    Share,
    SourceName,
    Switch,
    Text,
    ValidationContext,
    Whole,
    default,
    validated,
)
from .kinds import MODES, Measurement
from .own_model import OwnModel, OwnModelKey
from .provided import Interpreter
from .repeats import AUTO, FIRST_LOOK, MOST_WITHIN_BUDGET, PAIRS, Repeats
from .suite_axes import (
    Axes,
    AxesKeys,
    MeasurementKeys,
    Pattern,
    all_axes,
    named_axes,
    read_measurements,
)
from .tuned import FileName, Tuned, load_tuned
from .validation import ConfigError, MissingKey, NotAllowed, did_you_mean, show
from .variables import Variables
from .yaml_files import read_yaml

_WARMUP = "a whole number of at least 1, or {at_least: .., at_most: ..}, up to 1000000"
_TIMED = (
    "a whole number of at least 1, or {at_least: .., seconds: ..}: as many steps as take so long"
)
_REPEATS = (
    "a whole number of at least 1, auto, {at_least: .., at_most: .., width: ..}, or {margin: .., "
    "at_most: ..}, up to 1000"
)


def _not_less(at_most: int, info: ValidationInfo[ValidationContext]) -> int:
    """Return ``at_most``. Raises NotAllowed if it is less than ``at_least``."""
    if at_most < (at_least := info.data.get("at_least", 1)):
        raise NotAllowed(f"at_least, which is {at_least}, or more")
    return at_most


class Warmup(Keys):
    """Steps before the timed ones: until the step time has settled, at most ``at_most``. Without
    ``at_most``: ``at_least`` steps."""

    at_least: Count
    # Fewer steps cannot settle.
    at_most: Annotated[int, Whole(10, MILLION), AfterValidator(_not_less)] | None


class _RepeatsKeys(Keys):
    at_least: Annotated[int, Whole(1, 1000)]
    at_most: Annotated[int, Whole(6, 1000), AfterValidator(_not_less)]  # fewer have no interval
    width: Share = default(AUTO.width)


class _PairsKeys(Keys):
    """Pairs of two variants: until each case is slower by more than ``margin`` or not.

    ``two_sided``: also faster or not.
    """

    margin: Share
    two_sided: Switch = False
    at_most: Annotated[int, Whole(1, 1000)] = PAIRS


_UntilKnown = Annotated[
    Annotated[_RepeatsKeys, Tag("until narrow")] | Annotated[_PairsKeys, Tag("until decided")],
    Discriminator(
        lambda keys: (
            "until decided" if isinstance(keys, dict) and "margin" in keys else "until narrow"
        )
    ),
]


def _repeats(written: int | str | _RepeatsKeys | _PairsKeys) -> Repeats:
    if isinstance(written, _PairsKeys):
        at_least = min(written.at_most, FIRST_LOOK)
        return Repeats(at_least, written.at_most, None, written.margin, written.two_sided)
    if isinstance(written, _RepeatsKeys):
        return Repeats(written.at_least, written.at_most, written.width)
    return AUTO if isinstance(written, str) else Repeats(written, written, None)


class Timed(Keys):
    """Timed steps: ``at_least``, and as many as take about ``seconds``. Without ``seconds``:
    ``at_least`` steps."""

    at_least: Count
    seconds: Count | None


def _timed(written: int | Timed) -> Timed:
    return Timed(at_least=written, seconds=None) if isinstance(written, int) else written


def _warmup(written: int | Warmup) -> Warmup:
    return Warmup(at_least=written, at_most=None) if isinstance(written, int) else written


class Steps(Keys):
    """Steps of a run."""

    warmup: Annotated[
        Warmup,
        ReadAs(
            Annotated[
                Count | Warmup,
                AllowedValues(_WARMUP),
            ],
            _warmup,
        ),
    ]
    timed: Annotated[
        Timed,
        ReadAs(
            Annotated[
                Count | Timed,
                AllowedValues(_TIMED),
            ],
            _timed,
        ),
    ]
    breakdown: Switch = True


class BatchBounds(Keys):
    """Batches per device that a search tries, where ``batch_per_device`` is ``max``: multiples of
    ``multiple_of`` up to ``at_most``."""

    multiple_of: Count = 8
    at_most: Count = 4096

    @property
    def largest(self) -> int:
        """Largest batch within the bounds."""
        return self.at_most // self.multiple_of * self.multiple_of

    @model_validator(mode="after")
    def _some(self) -> BatchBounds:
        if not self.largest:
            allowed = f"multiple_of, which is {self.multiple_of}, or more"
            raise NotAllowed(allowed, show(self.at_most), "at_most")
        return self


class Variant(Keys):
    """Side of an A/B test: settings that replace the defaults."""

    environments: dict[FrameworkName, EnvironmentPath] = default({})
    interpreters: dict[FrameworkName, Interpreter] = default({})
    variables: Variables = default({})
    tuned: FileName | None = None
    preload: Allocator | None = None
    huge_pages: Switch = False
    source: SourceName | None = None
    model: OwnModelKey | None = None

    @model_validator(mode="after")
    def _one_allocator(self) -> Variant:
        if self.preload and self.huge_pages:
            raise NotAllowed(
                "of glibc's allocator alone, which preload replaces", "true", "huge_pages"
            )
        return self


_Side = Annotated[Variant, ReadAs(Variant | None, lambda side: side or Variant())]
_VariantName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,100}$"),
    AllowedValues("a name of at most 100 letters, digits, _ and ."),
]


class SuiteFile(Keys):
    """Keys of a suite file."""

    description: Annotated[str, AllowedValues("a text")] = ""
    steps: Steps = default({"warmup": 20, "timed": 100})
    repeats: Annotated[
        Repeats,
        ReadAs(
            Annotated[
                Annotated[int, Whole(1, 1000)] | Literal["auto"] | _UntilKnown,
                AllowedValues(_REPEATS),
            ],
            _repeats,
        ),
    ] = default(7)
    variants: Annotated[
        dict[_VariantName, _Side],
        AllowedValues(
            "a mapping from name to nothing, or to environments, interpreters, variables, tuned, "
            "preload, huge_pages, source and model"
        ),
    ] = default({})
    largest_batch: BatchBounds = default({})
    time_budget: Seconds | None = None
    batch_check: Annotated[int, Whole(2, 1000)] | None = None
    on_gpus: Text | None = None
    axes: Annotated[Axes, ReadAs(AxesKeys, all_axes)] | None = None
    include: list[Annotated[Axes, ReadAs(AxesKeys, named_axes)]] = default([])
    then: list[Annotated[Axes, ReadAs(AxesKeys, named_axes)]] = default([])
    exclude: list[Annotated[Axes, ReadAs(Pattern, named_axes)]] = default([])
    measurements: Annotated[
        dict[str, Measurement], ReadAs(dict[str, MeasurementKeys], read_measurements)
    ] = default({})
    nodes_named: NodesNamed | None = None

    @model_validator(mode="after")
    def _something(self) -> SuiteFile:
        if self.axes is None and not self.measurements:
            raise MissingKey("axes", "measurements")
        if self.axes is None and (self.include or self.then):
            raise MissingKey("axes", "no include" if self.include else "no then")
        return self

    @model_validator(mode="after")
    def _within_a_budget(self) -> SuiteFile:
        """Check the keys that a time budget goes with."""
        if self.time_budget is None:
            for key in ("then", "batch_check"):
                if getattr(self, key):
                    raise MissingKey("time_budget", f"no {key}")
            return self
        for key in ("variants", "measurements"):
            if getattr(self, key):
                raise NotAllowed("nothing beside time_budget", "some", key)
        if self.repeats.width is not None or self.repeats.margin is not None:
            raise NotAllowed(
                "a whole number beside time_budget: the most repeats", "a rule", "repeats"
            )
        return self

    @model_validator(mode="after")
    def _two_sides(self) -> SuiteFile:
        if self.repeats.margin is not None and len(self.variants) != 2:
            raise NotAllowed(
                "two, of which the first is the base",
                ", ".join(self.variants) or "none",
                "variants",
            )
        return self

    @model_validator(mode="after")
    def _models_of_one_framework(self) -> SuiteFile:
        own = {name: variant.model for name, variant in self.variants.items()}
        frameworks = {model.framework if model else None for model in own.values()}
        if len(frameworks) > 1:
            shown = ", ".join(
                f"{name}: {own_model.source if own_model else 'none'}"
                for name, own_model in own.items()
            )
            raise NotAllowed("a model of the same framework in each, or in none", shown, "variants")
        return self

    @model_validator(mode="after")
    def _one_node_a_run(self) -> SuiteFile:
        blocks = [self.axes or {}, *self.include, *self.then]
        blocks += [dict(measurement.axes) for measurement in self.measurements.values()]
        most = max((count for block in blocks for count in block.get("nodes", ())), default=1)
        if self.nodes_named and most > 1:
            raise NotAllowed("1 beside nodes_named: each run is of one node", str(most), "nodes")
        return self

    @model_validator(mode="after")
    def _excluding_what_there_is(self) -> SuiteFile:
        known = [*MODES, *self.measurements]
        for number, pattern in enumerate(self.exclude):
            for index, mode in enumerate(pattern.get("mode", ())):
                if mode not in known:
                    shown = show(mode) + did_you_mean(mode, known)
                    key = f"exclude[{number}].mode[{index}]"
                    raise NotAllowed(", ".join(known), shown, key)
        return self


class Suite(SuiteFile):
    """A named matrix and its file.

    ``path``: the file in messages, relative to the project for a shipped suite; ``file``: its
    absolute path; ``tuned``: files of settings that variants use, by name; ``own_model``: name of
    the user's model that replaces those of the suite, or of the first variant's; ``gpu_suite``: the
    suite that replaces it on GPUs.
    """

    path: Path
    file: Path
    tuned: Tuned = default({})
    own_model: str = ""
    gpu_suite: Suite | None = None

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


def load_suite(
    name: str,
    catalog: Catalog,
    kinds: Path | None = None,
    storage: Path | None = None,
    data: Path | None = None,
    results: Path | None = None,
) -> Suite:
    """Read and check a suite: a name in ``config/suites/``, or the path of a YAML file.

    ``kinds``: folder of the user's benchmarks; ``storage``: default folder of the benchmark
    ``storage``; ``data``: default folder of tasks that read files; ``results``: value of {results}.

    Raises :class:`NotAllowed` for an unknown suite, ConfigError for an invalid one.
    """
    path = suite_files.find(name, catalog.root)
    shown = path.relative_to(catalog.root) if path.is_relative_to(catalog.root) else path
    checked = validated(
        SuiteFile,
        read_yaml(path),
        ValidationContext(catalog, kinds=kinds, storage=storage, data=data, results=results),
        str(shown),
    )
    gpu_suite = None
    if checked.on_gpus:
        try:
            gpu_suite = load_suite(checked.on_gpus, catalog, kinds, storage, data, results)
        except NotAllowed as error:
            raise ConfigError(f"{shown}: {error.line('on_gpus', checked.on_gpus)}") from None
    files = {variant.tuned for variant in checked.variants.values() if variant.tuned}
    settings = {name: load_tuned(catalog, name) for name in files}
    keys = {**dict(checked), "repeats": _repeats_of(checked)}
    return Suite.model_construct(
        path=shown, file=path.absolute(), tuned=settings, own_model="", gpu_suite=gpu_suite, **keys
    )


def _repeats_of(suite: SuiteFile) -> Repeats:
    """Return the number of repeats; a time budget decides it, up to ``repeats``."""
    if suite.time_budget is None:
        return suite.repeats
    is_named = "repeats" in suite.model_fields_set
    return Repeats(1, suite.repeats.at_most if is_named else MOST_WITHIN_BUDGET, None)
