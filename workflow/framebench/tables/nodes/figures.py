"""The figures of nodes, by a name that is the same for each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ...cases.conditions import CONDITIONS, Key
from ...cases.names import topology_of
from ...config.kinds import MODES
from ...machine.identities import Identity, completed
from ...records.record_sets import machine_label
from ...records.run import Run
from .. import condition_text
from ..results import CaseResult, CaseResults, marks_of

#: The name that the importer gives as the source of a tool's figures.
SUPERBENCH = "superbench"
#: Our precisions that SuperBench spells in another way.
SUPERBENCH_PRECISIONS = {"fp8": "fp8_hybrid"}
#: The parameter of an imported figure with the name of its metric, where older versions of
#: SuperBench wrote another one than :func:`superbench_metric` makes.
OLD_NAME = "metric_name"
#: Of conditions those that tell one node, or one state of its software, from another.
_OF_NODES = ("node", "machine", "environment")


@dataclass(frozen=True)
class NodeMeasurement:
    """A figure of a node. ``values``: of its ok repeats, in ``unit``; ``reason``: why it has none;
    ``hardware``: label of the kind of machine, "" where all nodes are of one."""

    node: str
    name: str
    unit: str
    better: str
    values: tuple[float, ...]
    status: str
    reason: str
    marks: str
    hardware: str
    runs: tuple[Run, ...]

    @property
    def middle(self) -> float | None:
        """The median, None without a value."""
        return median(self.values) if self.values else None

    @property
    def is_superbench(self) -> bool:
        """Tell whether SuperBench measured it."""
        return any(run.case.source == SUPERBENCH for run in self.runs)

    @property
    def upwards(self) -> tuple[float, ...]:
        """Such that more is better."""
        return oriented(self.values, self.better)


def oriented(values: Iterable[float], better: str) -> tuple[float, ...]:
    """Such that more is better; of no use where one is not above 0."""
    return tuple(values) if better == "higher" else tuple(1 / value for value in values)


def measured(cases: CaseResults) -> list[NodeMeasurement]:
    """Of all nodes that runs were asked for by name, sorted by figure and node."""
    groups: dict[tuple[str, str, str, str], list[CaseResult]] = defaultdict(list)
    for result in cases.values():
        if node := result.conditions.node:
            groups[name_of(result.key), node, result.unit, result.better].append(result)
    labels = _labels([run for some in groups.values() for one in some for run in one.runs])
    return sorted(
        (_one(*key, results, labels) for key, results in groups.items()),
        key=lambda one: (one.name, node_order(one.node), one.unit),
    )


def name_of(key: Key) -> str:
    """Kind of measurement and metric, and what else of a case and its conditions decides the
    figure. One that was imported from SuperBench has the name that it has there."""
    case = key.case
    if case.source == SUPERBENCH:
        return _as_superbench(key)
    parts = [case.mode, key.metric, case.framework, case.model, case.precision]
    parts += ["" if case.compiler == "none" else case.compiler, topology_of(case)]
    parts += [f"b{case.batch_per_device}" if case.batch_per_device else ""]
    parts += [f"{name}={_text(value)}" for name, value in (*case.parameters, *key.point)]
    others = (name for name in CONDITIONS if name not in _OF_NODES)
    parts += [condition_text.short(name, getattr(key.conditions, name)) for name in others]
    return "/".join(filter(None, parts)).replace("\n", " ")


def node_order(name: str) -> tuple[Any, ...]:
    """Sorts n2 before n10."""
    digits = "".join(letter if letter.isdecimal() else " " for letter in name).split()
    stem = "".join(letter for letter in name if not letter.isdecimal())
    return (stem, *map(int, digits))


def superbench_metric(precision: str, mode: str, what: str) -> str:
    """Name a metric of a model benchmark as SuperBench does since version 0.4."""
    return f"{SUPERBENCH_PRECISIONS.get(precision, precision)}_{mode}_{what}"


def _as_superbench(key: Key) -> str:
    case, given = key.case, dict(key.case.parameters)
    model = "-".join(filter(None, (case.framework, case.model)))
    metric = key.metric
    mode = case.mode.removeprefix(f"{SUPERBENCH}_")
    if mode in MODES:
        what = metric.replace("throughput_per_device", "throughput")
        metric = superbench_metric(case.precision, mode, what)
    metric = str(given.get(OLD_NAME, metric))
    name = "/".join(filter(None, (str(given.get("benchmark", "")), model, metric)))
    return f"{name}:{given['rank']}" if given.get("rank") else name


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _one(
    name: str,
    node: str,
    unit: str,
    better: str,
    results: list[CaseResult],
    labels: Mapping[Identity, str],
) -> NodeMeasurement:
    values = tuple(value for one in results for value in one.values)
    runs = tuple(run for one in results for run in one.runs)
    status = "ok" if values else results[0].status
    reason = "; ".join(dict.fromkeys(filter(None, (one.reason for one in results))))
    hardware = labels[_kind(runs[0].machine)]
    return NodeMeasurement(
        node, name, unit, better, values, status, reason, marks_of(*results), hardware, runs
    )


def _kind(machine: Identity) -> Identity:
    """All but the name: nodes with the same hardware are held against each other."""
    return machine._replace(host="")


def _labels(runs: list[Run]) -> dict[Identity, str]:
    """Of each kind of machine; "" for all where there is but one."""
    fuller = completed({_kind(run.machine) for run in runs})
    several = len({*fuller.values()}) > 1
    return {kind: machine_label(full) if several else "" for kind, full in fuller.items()}
