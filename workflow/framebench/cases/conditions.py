"""Identity of a figure: the measured case, and the conditions of the measurement.

Both travel as values from a record, or from a line of a file, to the cell of a table. They become
text for people once, at the end (see `condition_words`), and are never parsed back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, make_dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from core import axes, inputs, observed
from core.axes import MODES as MODES
from core.axes import Parameters as Parameters
from core.case import further_of
from core.inputs import NATIVE
from core.parallelism import DATA, layout_of

#: Metric of timed steps.
THROUGHPUT = "throughput"
#: Source of figures that this project measured.
OURS = "framebench"


@dataclass(frozen=True, slots=True)
class Case:
    """The measured case. ``mode``: the benchmark; fields that it lacks are "" or 0.
    ``batch_per_device`` is in samples; ``parameters``: of the benchmark, () for steps."""

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
        """Return whether steps of a model are timed."""
        return self.mode in MODES

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node


_Values: Any = make_dataclass(
    "_Values",
    [
        *((axis.name, Any, axis.default) for axis in observed.CONDITIONS),
        ("further", Parameters, ()),
    ],
    frozen=True,
    slots=True,
)


class Conditions(_Values):  # type: ignore[misc]
    """Conditions of a measurement, see :mod:`core.observed`.

    None and "" mean unknown or not applicable. ``further``: values of a user's axes, readable as
    attributes, see :class:`core.case.Case`."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in CONDITIONS:
                return dict(self.further).get(name, axes.named(name).default)
            raise AttributeError(name)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Conditions:
        """Return the conditions with these values by name, as in JSON."""
        return cls(**{**values, "further": tuple(map(tuple, values.get("further", ())))})

    @property
    def without_arm(self) -> Conditions:
        """Return the conditions with defaults for those in which variants may differ."""
        return replace(self, **OF_ARM)

    @property
    def unlabelled(self) -> Conditions:
        """Return the conditions without the labels ``machine`` and ``environment``."""
        if not (self.machine or self.environment):
            return self
        return replace(self, machine="", environment="")

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key; defaults and unknown values come first."""
        return tuple((value not in (None, NATIVE), value) for value in _CONDITIONS_OF(self))


def _input(source: str, identity: str) -> str:
    """Return the input of a case; ``identity``: of its data set, "" if it read none."""
    if identity:
        name = source if source in inputs.READING else inputs.DATA
        return inputs.told_apart(name, identity)
    return NATIVE if source == inputs.SYNTHETIC else source


def replicas(case: Case, conditions: Conditions) -> int:
    """Return the number of devices, or of device groups that share a step, with their own
    samples."""
    return layout_of(conditions.parallelism, case.devices).replicas


def total_batch(case: Case, conditions: Conditions) -> int:
    """Return the samples of a step on all devices together."""
    return samples_of_replica(case, conditions) * replicas(case, conditions)


def samples_of_replica(case: Case, conditions: Conditions) -> int:
    """Return the samples that a replica computes in a step."""
    return case.batch_per_device * int(conditions.accumulation)


#: Fields of a case that every table has as columns.
CASE = tuple(field.name for field in fields(Case) if field.name != "parameters")
#: Counts among them; 0 if an imported file does not state them.
COUNTS = ("nodes", "devices_per_node", "batch_per_device")
CONDITIONS = tuple(axis.name for axis in (*observed.CONDITIONS, *axes.further()))
#: Defaults of the conditions in which the variants of an A/B test may differ.
OF_ARM = {axis.name: axis.default for axis in observed.CONDITIONS if axis.of_variant}
#: Columns that identify the figures of a row.
KEYS = (*CASE, *CONDITIONS)

_CONDITIONS_OF = attrgetter(*CONDITIONS)


def _ordered(named: Parameters) -> tuple[Any, ...]:
    """Return a sort key for named values of mixed types."""
    return tuple((name, str(type(value)), value) for name, value in named)


class Key(NamedTuple):
    """Identity of a figure, shared by the repeats of a case. Different units or metrics are
    different keys."""

    case: Case
    conditions: Conditions
    unit: str
    metric: str = THROUGHPUT
    point: Parameters = ()  # point of a metric that a run has several of

    @property
    def row(self) -> dict[str, Any]:
        """Values of the columns KEYS, by column; None for a count that an imported figure lacks."""
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
        """Number of devices, or of device groups that share a step, with their own samples."""
        return replicas(self.case, self.conditions)

    @property
    def on_one(self) -> Key:
        """Return the key of the same case on one device, with the same batch on it."""
        alone = replace(self.conditions, parallelism=DATA)
        return self.at(nodes=1, devices_per_node=1)._replace(conditions=alone)

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key of cases; a scaling series is in ascending order."""
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
        """Return the key with other values for the given fields of the case."""
        return self._replace(case=replace(self.case, **other))


def of_settings(settings: Mapping[str, Any], case: Mapping[str, Any]) -> Conditions:
    """Return the conditions in the settings and axis values of a record or a plan.

    Raises ValueError for an unknown axis.
    """
    identity = settings.get("data", {}).get("identity", "")
    found = {
        axis.name: settings.get(axis.setting) or axis.default
        if axis.observed
        else case.get(axis.name) or axis.default
        for axis in observed.CONDITIONS
    }
    found["input"] = _input(case.get("input") or inputs.SYNTHETIC, identity)
    if found["accelerator"] != "cpu":  # on GPUs the cores of the process are no condition
        found["cores_per_device"] = None
    return Conditions(further=further_of(case), **found)
