"""Identity of a figure: the measured case, and the conditions of the measurement.

Both travel as values from a record, or from a line of a file, to the cell of a table. They become
text for people once, at the end (see `tables.formatting`), and are never parsed back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import make_dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

from core import axes
from core.axes import MODES as MODES
from core.axes import NATIVE
from core.axes import Parameters as Parameters
from core.case import INPUT, Case
from core.parallelism import DATA

#: Metric of timed steps.
THROUGHPUT = "throughput"
#: Source of figures that this project measured.
OURS = "framebench"


_Values: Any = make_dataclass(
    "_Values",
    [(axis.name, Any, axis.default) for axis in axes.CONDITIONS if axis.name not in axes.IN_CASE],
    frozen=True,
    slots=True,
)


class Conditions(_Values):  # type: ignore[misc]
    """Conditions of a measurement that are not part of its case, see :mod:`core.axes`. None and ""
    mean unknown or not applicable."""

    __slots__ = ()

    @property
    def without_variant(self) -> Conditions:
        """Return the conditions, with those that a variant may change set to their defaults."""
        return replace(self, **_OF_VARIANT)

    @property
    def unlabelled(self) -> Conditions:
        """Return the conditions without the labels ``machine`` and ``environment``."""
        if not (self.machine or self.environment):
            return self
        return replace(self, machine="", environment="")


def _input(source: str, identity: str) -> str:
    """Return the condition ``input``; ``identity``: that of the data set, "" if none was read."""
    if identity:
        name = source if source in axes.READING else axes.DATA
        return f"{name}@{identity[:8]}"
    return NATIVE if source == axes.SYNTHETIC else source


def input_axis(mode: str, condition: str) -> str:
    """Return the input of a case as a suite names it. ``condition``: the condition ``input``, such
    as ``data@1a2b3c4d``. The benchmark of input pipelines counts as synthetic."""
    name = condition.partition("@")[0]
    if name not in axes.INPUTS or (mode == INPUT and name == axes.DATA):
        return axes.SYNTHETIC
    return name


#: End of the name of a user's own model: eight hexadecimal digits of its content's digest.
_OWN_VERSION = re.compile(r"@[0-9a-f]{8}$")


def series_of_model(model: str) -> str:
    """Return the name that a user's own model keeps over edits; other names unchanged."""
    return _OWN_VERSION.sub("", model)


#: Fields of a case that every table has as columns.
CASE = (
    "framework", "framework_version", "source", "model", "mode", "precision", "compiler", "nodes",
    "devices_per_node", "batch_per_device",
)  # fmt: skip
#: Counts among the fields of CASE; 0 if an imported file does not state them.
COUNTS = ("nodes", "devices_per_node", "batch_per_device")
CONDITIONS = tuple(axis.name for axis in axes.CONDITIONS)
#: Conditions in which the variants of an A/B test may differ.
OF_VARIANT = tuple(axis.name for axis in axes.CONDITIONS if axis.in_variants)
_OF_VARIANT = {
    axis.name: axis.default
    for axis in axes.CONDITIONS
    if axis.in_variants and axis.name not in axes.IN_CASE
}
#: Columns that identify the figures of a row.
KEYS = (*CASE, *CONDITIONS)


_values_of = attrgetter(
    *(
        f"case.{axes.IN_CASE[name]}" if name in axes.IN_CASE else f"conditions.{name}"
        for name in CONDITIONS
    )
)


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
    point: Parameters = ()  # parameters of the point, for a metric with several points

    @property
    def row(self) -> dict[str, Any]:
        """Values of the columns KEYS, by column; None for a count that an imported figure lacks."""
        case = {name: getattr(self.case, name) for name in CASE}
        case |= {name: case[name] or None for name in COUNTS}
        return case | dict(zip(CONDITIONS, _values_of(self), strict=True))

    @property
    def on_one(self) -> Key:
        """Return the key of the same case on one device, with the same batch per device."""
        return self.at(nodes=1, devices_per_node=1, parallelism=DATA)

    @property
    def without_versions(self) -> Key:
        """Return the key without the versions of the framework and of a user's own model."""
        return self.at(framework_version="", model=series_of_model(self.case.model))

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key of cases; cases of a scaling series sort by their number of devices."""
        case = self.case
        return (
            case.framework,
            case.framework_version,
            case.source,
            case.model,
            case.mode,
            case.precision,
            case.compiler,
            tuple((value not in (None, NATIVE), value) for value in _values_of(self)),
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
        return self._replace(case=self.case._replace(**other))


def conditions_from_settings(
    settings: Mapping[str, Any], source: str = axes.SYNTHETIC
) -> Conditions:
    """Return the conditions in the settings of a record or a plan; ``source``: its input."""
    found = {
        axis.name: settings.get(axis.setting) or axis.default
        for axis in axes.CONDITIONS
        if axis.name not in axes.IN_CASE
    }
    if not settings.get("variant"):  # older records may have a condition for the allocator
        pages = "huge pages" if settings.get("huge_pages") else ""
        found["source_variant"] = settings.get("preload") or pages
    found["input"] = _input(source, settings.get("data", {}).get("identity", ""))
    if found["accelerator"] != "cpu":  # on GPUs, the cores of the process are not a condition
        found["cores_per_device"] = None
    return Conditions(**found)


def case_and_conditions(record: Mapping[str, Any], mode: str) -> tuple[Case, Conditions]:
    """Return case and conditions of a record; ``mode``: the mode or benchmark of the case.

    Raises ValueError for an unknown axis."""
    case, settings = record["case"], record["settings"]
    conditions = conditions_from_settings(settings, case.get("input") or axes.SYNTHETIC)
    found = Case.from_record(
        case,
        mode,
        framework_version=record["framework_version"],
        source=record["source"],
        variant=settings.get("variant") or "",
        node=settings.get("node") or "",
    )
    counts: dict[str, Any] = {name: int(getattr(found, name)) for name in COUNTS}  # 4.0 in JSON
    return found._replace(**counts, input=input_axis(mode, conditions.input)), conditions
