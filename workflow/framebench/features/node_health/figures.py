"""Figures of nodes, with names that are the same for every node."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from ...cases.conditions import CONDITIONS, Key
from ...cases.names import SUPERBENCH, superbench_key, topology_of
from ...machine.identities import Identity
from ...records.record_sets import machine_label
from ...records.run import Run
from ...tables import formatting
from ...tables.results import CaseResult, CaseResults, flags_of

#: Conditions that identify a node or the state of its software.
_OF_NODES = ("node", "machine", "environment")


@dataclass(frozen=True)
class NodeMeasurement:
    """A figure of a node.

    ``values``: figures of successful repeats, in ``unit``. ``reason``: why there are none.
    ``hardware``: label of the machine type; "" if all nodes have the same."""

    node: str
    name: str
    unit: str
    better: str
    values: tuple[float, ...]
    status: str
    reason: str
    flags: str
    hardware: str

    @property
    def middle(self) -> float | None:
        """Median of the values; None without any."""
        return median(self.values) if self.values else None

    @property
    def upwards(self) -> tuple[float, ...]:
        """Values so that more is better: inverted if lower is better. All must be above 0."""
        values = self.values
        return values if self.better == "higher" else tuple(1 / value for value in values)


def measured(cases: CaseResults) -> list[NodeMeasurement]:
    """Return the figures of all nodes that were requested by name, sorted by figure and node."""
    groups: dict[tuple[str, str, str, str], list[CaseResult]] = defaultdict(list)
    for result in cases.values():
        if node := result.case.node:
            groups[name_of(result.key), node, result.unit, result.better].append(result)
    labels = _labels([run for some in groups.values() for result in some for run in result.runs])
    found = []
    for (name, node, unit, better), results in groups.items():
        values = tuple(value for result in results for value in result.values)
        status = "ok" if values else results[0].status
        reason = "; ".join(dict.fromkeys(filter(None, (result.reason for result in results))))
        hardware, flags = labels[_kind(results[0].runs[0].machine)], flags_of(*results)
        found.append(
            NodeMeasurement(node, name, unit, better, values, status, reason, flags, hardware)
        )
    return sorted(found, key=lambda each: (each.name, node_order(each.node), each.unit))


def name_of(key: Key) -> str:
    """Return the name of a figure: benchmark, metric, and all other case data that affect it.

    Figures imported from SuperBench keep their name."""
    case = key.case
    if case.source == SUPERBENCH:
        return superbench_key(key)
    parts = [case.mode, key.metric, case.framework, case.model, case.precision]
    parts += ["" if case.compiler == "none" else case.compiler, topology_of(case)]
    parts += [f"b{case.batch_per_device}" if case.batch_per_device else ""]
    parts += [f"{name}={_text(value)}" for name, value in (*case.parameters, *key.point)]
    row = key.row
    others = (name for name in CONDITIONS if name not in _OF_NODES)
    parts += [formatting.condition_label(name, row[name]) for name in others]
    return "/".join(filter(None, parts)).replace("\n", " ")


def node_order(name: str) -> tuple[Any, ...]:
    """Return a sort key that puts n2 before n10."""
    digits = "".join(letter if letter.isdecimal() else " " for letter in name).split()
    stem = "".join(letter for letter in name if not letter.isdecimal())
    return (stem, *map(int, digits))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(machine: Identity) -> Identity:
    """Return a machine's identity without its host name: nodes of equal hardware are compared."""
    return machine._replace(host="")


def _labels(runs: list[Run]) -> dict[Identity, str]:
    """Return the label of each machine type; "" for all if there is only one."""
    kinds = {_kind(run.machine) for run in runs}
    return {kind: machine_label(kind) if len(kinds) > 1 else "" for kind in kinds}
