"""What a figure is of: the case that was asked for, and the conditions that it was measured under.

Both travel as values from where a record or a line of a file is read to the cell of a table. Text
for people is made of them once, at the end (see `condition_words`), and never read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from core import axes, inputs
from core.axes import MODES as MODES
from core.axes import Parameters as Parameters
from core.case import further_of
from core.parallelism import DATA, layout_of

#: The input of whoever does not say of another; of our own runs that of a batch on the device.
NATIVE = "native"
#: The metric of steps.
THROUGHPUT = "throughput"
#: The source of what this project measured, wherever it is read from.
OURS = "framebench"


@dataclass(frozen=True, slots=True)
class Case:
    """What was asked for. ``mode``: the kind of measurement; what that does not have is "" or 0.
    ``batch_per_device`` is in samples; ``parameters``: of the kind, () for steps."""

    framework: str
    framework_version: str
    source: str
    model: str
    mode: str
    precision: str
    compiler: str
    nodes: int
    devices_per_node: int
    batch_per_device: int
    parameters: Parameters = ()

    @property
    def is_step(self) -> bool:
        """Whether steps of a model are timed."""
        return self.mode in MODES

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node


#: Conditions that the arms of an A/B test may differ in.
OF_ARM = ("arm", "preload", "huge_pages", "model_source")


@dataclass(frozen=True, slots=True)
class Conditions:
    """What else decides the figure; every field has a column in the tables. None and "" are not
    known, or do not apply."""

    accelerator: str = ""
    cores_per_device: int | None = None  # of a processor alone
    side_by_side: bool = False  # other runs had the rest of the machine meanwhile
    sequence_length: int | None = None  # in tokens
    accumulation: int = 1  # micro-steps of a training step, of which each has the batch
    parallelism: str = DATA  # how the devices share a training step
    warmup_steps: int | None = None
    warmup_limit: int | None = None  # of a warm-up that goes on until the step time has settled
    timed_steps: int | None = None
    arm: str = ""  # of an A/B test
    preload: str = ""  # the allocator that ranks load before all else
    huge_pages: bool = False  # glibc's allocator asks for them
    model_source: str = ""  # whose code the model is, where not ours
    node: str = ""  # that was asked for, of a suite that measures each node
    input: str = NATIVE  # where the samples come from, and by which pipeline
    source_variant: str = ""  # what an imported set says besides, in its own words
    # Labels of what tells runs apart that would otherwise share a row; see records.
    machine: str = ""
    environment: str = ""
    #: Values of axes of a user, see :class:`core.case.Case`; attributes too.
    further: Parameters = ()

    def __post_init__(self) -> None:
        if isinstance(self.further, list):  # as JSON holds them
            object.__setattr__(self, "further", tuple(map(tuple, self.further)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in CONDITIONS:
                return dict(self.further).get(name, axes.named(name).default)
            raise AttributeError(name)

    @property
    def without_arm(self) -> Conditions:
        """With what is usual in the place of what an arm has of its own (OF_ARM)."""
        usual: dict[str, Any] = {one.name: one.default for one in fields(self)}
        return replace(self, **{name: usual[name] for name in OF_ARM})

    @property
    def unlabelled(self) -> Conditions:
        """Without what only tells a run apart from others of its set."""
        if not (self.machine or self.environment):
            return self
        return replace(self, machine="", environment="")

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts them; what is usual or not known comes first."""
        return tuple((value not in (None, NATIVE), value) for value in _CONDITIONS_OF(self))


def _input(source: str, identity: str) -> str:
    """``identity``: of the data set that was read, also where the case has no input."""
    if identity:
        name = source if source in inputs.READING else inputs.DATA
        return inputs.told_apart(name, identity)
    return NATIVE if source == inputs.SYNTHETIC else source


def replicas(case: Case, conditions: Conditions) -> int:
    """Devices, or groups of them that share a step, with samples of their own."""
    return layout_of(conditions.parallelism, case.devices).replicas


def total_batch(case: Case, conditions: Conditions) -> int:
    """Samples of a step on all devices together."""
    return samples_of_replica(case, conditions) * replicas(case, conditions)


def samples_of_replica(case: Case, conditions: Conditions) -> int:
    """Return the samples that a replica computes in a step."""
    return case.batch_per_device * conditions.accumulation


#: Those that every table has a column for.
CASE = tuple(field.name for field in fields(Case) if field.name != "parameters")
#: Of those, the counts, which are 0 where an imported file does not say them.
COUNTS = ("nodes", "devices_per_node", "batch_per_device")
CONDITIONS = (
    *(field.name for field in fields(Conditions) if field.name != "further"),
    *(axis.name for axis in axes.further()),
)
#: The columns that say what the figures of a row are of.
KEYS = (*CASE, *CONDITIONS)

_CONDITIONS_OF = attrgetter(*CONDITIONS)


def _ordered(named: Parameters) -> tuple[Any, ...]:
    """Sorts values of whichever types."""
    return tuple((name, str(type(value)), value) for name, value in named)


class Key(NamedTuple):
    """What the figures of a case's repeats have in common: images/s and sentences/s have no common
    median."""

    case: Case
    conditions: Conditions
    unit: str
    metric: str = THROUGHPUT
    point: Parameters = ()  # the point, of a metric that a run has several of

    @property
    def row(self) -> dict[str, Any]:
        """The values of the columns KEYS, by column; None for a count that an imported figure does
        not have."""
        case = {name: getattr(self.case, name) for name in CASE}
        case |= {name: case[name] or None for name in COUNTS}
        return case | {name: getattr(self.conditions, name) for name in CONDITIONS}

    @property
    def total_batch(self) -> int:
        """Samples of a step on all devices together."""
        return total_batch(self.case, self.conditions)

    @property
    def samples_of_replica(self) -> int:
        """Samples that a replica computes in a step."""
        return samples_of_replica(self.case, self.conditions)

    @property
    def replicas(self) -> int:
        """Devices, or groups of them that share a step, with samples of their own."""
        return replicas(self.case, self.conditions)

    @property
    def on_one(self) -> Key:
        """That of one device, with the same batch on it."""
        alone = replace(self.conditions, parallelism=DATA)
        return self.at(nodes=1, devices_per_node=1)._replace(conditions=alone)

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts cases so that a scaling series reads upwards."""
        case = self.case
        return (
            case.framework,
            case.framework_version,
            case.source,
            case.model,
            case.mode,
            case.precision,
            case.compiler,
            self.conditions.order,
            case.batch_per_device,
            case.nodes,
            case.devices_per_node,
            _ordered(case.parameters),
            self.metric,
            self.unit,
            _ordered(self.point),
        )

    def at(self, **other: Any) -> Key:
        """That of the case that differs from this one in the given fields only."""
        return self._replace(case=replace(self.case, **other))


def of_settings(settings: Mapping[str, Any], case: Mapping[str, Any]) -> Conditions:
    """Return the conditions of a record, or of what a plan asks for, from its settings and its
    values of axes. Raises ValueError for an unknown axis."""
    accelerator = settings["accelerator"]
    identity = settings.get("data", {}).get("identity", "")
    own = {axis.name: case.get(axis.name) or axis.default for axis in axes.BUILT_IN if axis.default}
    own["input"] = _input(own["input"], identity)
    return Conditions(
        accelerator=accelerator,
        # Of a GPU it is no condition how many cores its process has.
        cores_per_device=settings["cores_per_device"] if accelerator == "cpu" else None,
        side_by_side=bool(settings.get("side_by_side")),
        sequence_length=case.get("sequence_length"),
        warmup_steps=settings.get("warmup_steps"),
        warmup_limit=settings.get("warmup_limit"),
        timed_steps=settings.get("timed_steps"),
        arm=settings.get("variant") or "",
        preload=settings.get("preload") or "",
        huge_pages=bool(settings.get("huge_pages")),
        model_source=settings.get("source") or "",
        node=settings.get("node") or "",
        further=further_of(case),
        **own,
    )
