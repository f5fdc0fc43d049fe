"""Judgement of nodes: which are worse than they should be, and which failed.

1. Figures of equal name, unit and hardware are compared; names do not depend on the node. A node
   with unique hardware can only be compared with a baseline.
2. The margin is that of the first rule that matches a figure's name.
3. A node has failed if it was tried for a figure and lacks it, while another node has it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from ... import PROJECT
from ...cases.conditions import CONDITIONS, Key
from ...cases.names import SUPERBENCH, superbench_key, topology_of
from ...config.keys import Keys, Share, Text, Values, default, read_mapping, validated
from ...machine.identities import Identity
from ...records.record_sets import machine_label
from ...statistics.verdicts import CANNOT_TELL, FALSE_ALARMS, NO_DIFFERENCE, OTHERS, SLOWER
from ...tables import formatting
from ...tables.results import CaseResult, CaseResults, flags_of
from . import statistics as nodes

#: Default rules.
SHIPPED = PROJECT / "config" / "node_rules.yaml"
#: Conditions that identify a node or the state of its software.
_OF_NODES = ("node", "machine", "environment")
FAILED = "failed"
#: Verdicts, most urgent first.
URGENT = (SLOWER, FAILED, CANNOT_TELL, NO_DIFFERENCE)
#: Verdicts that are reported to administrators.
NAMED = (SLOWER, FAILED)
_RETURN_CODE = "return_code"

#: Repeats of healthy nodes by name and unit of a figure, more is better.
Baseline = Mapping[tuple[str, str], Sequence[float]]


class NodeRule(Keys):
    """A rule. ``metrics``: expressions, one of which must match the whole name of a figure in
    ``node_figures.csv``."""

    metrics: Values[re.Pattern[str]]
    worse_by: Share = default(0.05)


class NodeRules(Keys):
    """Content of a file of rules. ``false_alarms``: probability that some node of a healthy set is
    called slower."""

    false_alarms: Share = default(FALSE_ALARMS)
    rules: Annotated[dict[Text, NodeRule], Field(min_length=1)]

    def rule_of(self, figure: str) -> str:
        """Return the name of the first rule that matches a figure; "" if it does not count."""
        for name, rule in self.rules.items():
            if any(pattern.fullmatch(figure) for pattern in rule.metrics):
                return name
        return ""


def read_rules(path: Path | None) -> NodeRules:
    """Read a file of rules, by default the shipped one. Raises ConfigError for an invalid file."""
    path = path or SHIPPED
    return validated(NodeRules, read_mapping(path), str(path))


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
    runs = (run for some in groups.values() for result in some for run in result.runs)
    kinds = {_kind(run.machine) for run in runs}
    labels = {kind: machine_label(kind) if len(kinds) > 1 else "" for kind in kinds}
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
    for name, value in (*case.parameters, *key.point):
        parts.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
    row = key.row
    others = (name for name in CONDITIONS if name not in _OF_NODES)
    parts += [formatting.condition_label(name, row[name]) for name in others]
    return "/".join(filter(None, parts)).replace("\n", " ")


def node_order(name: str) -> tuple[Any, ...]:
    """Return a sort key that puts n2 before n10."""
    digits = "".join(letter if letter.isdecimal() else " " for letter in name).split()
    stem = "".join(letter for letter in name if not letter.isdecimal())
    return (stem, *map(int, digits))


def _kind(machine: Identity) -> Identity:
    """Return a machine's identity without its host name: nodes of equal hardware are compared."""
    return machine._replace(host="")


class JudgedFigure(NamedTuple):
    """Result of comparing a node's figure with the other nodes or the baseline (``side``).

    ``reference``: their median, in the unit of the figure. ``ratio``: above 1 is better. ``limit``:
    fraction by which the node may be worse."""

    figure: NodeMeasurement
    rule: str
    side: str
    verdict: str
    reference: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    limit: float | None = None
    p_adjusted: float | None = None
    reason: str = ""


class JudgedNode(NamedTuple):
    """A node with its verdict.

    ``telling``: figure that determined the verdict, or is nearest to its limit; nameless if no
    figure was judged."""

    name: str
    hardware: str
    verdict: str
    telling: JudgedFigure
    judged: Sequence[JudgedFigure]


def judge(
    figures: Sequence[NodeMeasurement], rules: NodeRules, baseline: Baseline | None = None
) -> list[JudgedNode]:
    """Return the judged nodes, most urgent first.

    The result does not depend on the order of ``figures``."""
    by_node: dict[str, list[JudgedFigure]] = {figure.node: [] for figure in figures}
    for row in (*_compared(figures, rules, baseline or {}), *_failed(figures)):
        by_node[row.figure.node].append(row)
    hardware = {figure.node: figure.hardware for figure in figures}
    nodes = [_node(name, hardware[name], some) for name, some in by_node.items()]
    return sorted(nodes, key=_urgency)


def baseline_of(figures: Sequence[NodeMeasurement]) -> Baseline:
    """Return the repeats of all nodes together, by name and unit of the figure."""
    kept: dict[tuple[str, str], list[float]] = defaultdict(list)
    for figure in figures:
        if min(figure.values, default=0) > 0:
            kept[figure.name, figure.unit] += figure.upwards
    return kept


def _compared(
    figures: Sequence[NodeMeasurement], rules: NodeRules, baseline: Baseline
) -> Iterator[JudgedFigure]:
    groups: dict[tuple[str, str, str, str], dict[str, NodeMeasurement]] = defaultdict(dict)
    for one in figures:
        if one.values and min(one.values) > 0 and (rule := rules.rule_of(one.name)):
            groups[rule, one.name, one.unit, one.hardware][one.node] = one
    asked = []
    for key, some in groups.items():
        rule, name, unit, _ = key
        known = baseline.get((name, unit), ())
        values = {node: measurement.upwards for node, measurement in some.items()}
        asked.append(nodes.NodeFigure(key, values, rules.rules[rule].worse_by, known))
        if len(some) < nodes.FEWEST and not known:
            why = f"needs {nodes.FEWEST} nodes of one kind of hardware, or a baseline"
            for measurement in some.values():
                yield JudgedFigure(measurement, rule, OTHERS, CANNOT_TELL, reason=why)
    for claim in nodes.judge(asked, rules.false_alarms):
        key = claim.figure.key
        one = groups[key][claim.node]
        reference = claim.reference if one.better == "higher" else 1 / claim.reference
        yield JudgedFigure(
            one, key[0], claim.side, claim.verdict, reference, claim.ratio, claim.interval,
            claim.figure.margin, claim.p_adjusted,
            "too few repeats, or too much noise" if claim.verdict == CANNOT_TELL else "",
        )  # fmt: skip


def _failed(figures: Sequence[NodeMeasurement]) -> Iterator[JudgedFigure]:
    """Yield figures that a node lacks and another node has.

    A figure that no node has says nothing about a node, except for failed return codes."""
    had = {figure.name for figure in figures if figure.values}
    for figure in figures:
        alone = figure.status == FAILED and figure.name.endswith(_RETURN_CODE)
        if not figure.values and (figure.name in had or alone):
            yield JudgedFigure(figure, "", "", FAILED, reason=f"{figure.status}: {figure.reason}")


def _node(name: str, hardware: str, judged: Sequence[JudgedFigure]) -> JudgedNode:
    if not judged:
        nothing = NodeMeasurement(name, "", "", "higher", (), "", "", "", hardware)
        why = "no rule matches any of its figures"
        telling = JudgedFigure(nothing, "", "", CANNOT_TELL, reason=why)
        return JudgedNode(name, hardware, CANNOT_TELL, telling, ())
    telling = min(judged, key=lambda figure: (URGENT.index(figure.verdict), *_nearness(figure)))
    return JudgedNode(name, hardware, telling.verdict, telling, judged)


def _nearness(figure: JudgedFigure) -> tuple[float, ...]:
    """Return a sort key: by p-value, then by distance from the limit."""
    p = 1.0 if figure.p_adjusted is None else figure.p_adjusted
    ratio = math.inf if figure.ratio is None else figure.ratio
    return p, ratio / (1 - (figure.limit or 0.0))


def _urgency(judged_node: JudgedNode) -> tuple[Any, ...]:
    near = _nearness(judged_node.telling)
    return (URGENT.index(judged_node.verdict), *near, node_order(judged_node.name))
