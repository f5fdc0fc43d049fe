"""Judgement of nodes: which are worse than they should be, and which failed.

1. Figures of equal name, unit and hardware are compared. A node with unique hardware has no others.
2. The margin is that of the first rule that matches a figure's name.
3. A node has failed if it was tried for a figure and lacks it, while another node has it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.verdicts import CANNOT_TELL, NO_DIFFERENCE, OTHERS, SLOWER
from .figures import NodeMeasurement, node_order
from .rules import NodeRules

FAILED = "failed"
#: Verdicts, most urgent first.
URGENT = (SLOWER, FAILED, CANNOT_TELL, NO_DIFFERENCE)
#: Verdicts that are reported to administrators.
NAMED = (SLOWER, FAILED)
_RETURN_CODE = "return_code"

#: Repeats of healthy nodes by name and unit of a figure, more is better.
Baseline = Mapping[tuple[str, str], Sequence[float]]


class JudgedFigure(NamedTuple):
    """Result of comparing a node's figure with one side.

    ``reference``: in the unit of the figure. ``ratio``: above 1 is better. ``limit``: fraction by
    which the node may be worse."""

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
    reason: str


def judge(
    figures: Sequence[NodeMeasurement], rules: NodeRules, baseline: Baseline | None = None
) -> list[JudgedNode]:
    """Return the judged nodes, most urgent first.

    The result does not depend on the order of ``figures``."""
    rows = [*_compared(figures, rules, baseline or {}), *_failed(figures)]
    by_node: dict[str, list[JudgedFigure]] = {figure.node: [] for figure in figures}
    for row in rows:
        by_node[row.figure.node].append(row)
    hardware = {figure.node: figure.hardware for figure in figures}
    nodes = [_node(name, hardware[name], some) for name, some in by_node.items()]
    return sorted(nodes, key=_urgency)


def baseline_of(figures: Sequence[NodeMeasurement]) -> Baseline:
    """Return the repeats of all nodes."""
    kept: dict[tuple[str, str], list[float]] = defaultdict(list)
    for figure in figures:
        if min(figure.values, default=0) > 0:
            kept[figure.name, figure.unit] += figure.upwards
    return kept


def _compared(
    figures: Sequence[NodeMeasurement], rules: NodeRules, baseline: Baseline
) -> Iterator[JudgedFigure]:
    from . import statistics as nodes  # slow to import, and plans need only names

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

    A figure that no node has says nothing, except for failed return codes."""
    had = {figure.name for figure in figures if figure.values}
    for figure in figures:
        alone = figure.status == FAILED and figure.name.endswith(_RETURN_CODE)
        if not figure.values and (figure.name in had or alone):
            yield JudgedFigure(figure, "", "", FAILED, reason=f"{figure.status}: {figure.reason}")


def _node(name: str, hardware: str, judged: Sequence[JudgedFigure]) -> JudgedNode:
    if not judged:
        nothing = NodeMeasurement(name, "", "", "higher", (), "", "", "", hardware)
        telling = JudgedFigure(nothing, "", "", CANNOT_TELL)
        why = "no rule matches any of its figures"
        return JudgedNode(name, hardware, CANNOT_TELL, telling, (), why)
    verdict = min((judged_figure.verdict for judged_figure in judged), key=URGENT.index)
    same = [judged_figure for judged_figure in judged if judged_figure.verdict == verdict]
    telling = min(same, key=_nearness)
    return JudgedNode(name, hardware, verdict, telling, judged, telling.reason)


def _nearness(figure: JudgedFigure) -> tuple[float, ...]:
    """Return a sort key: by p-value, then by distance from the limit."""
    p = 1.0 if figure.p_adjusted is None else figure.p_adjusted
    ratio = math.inf if figure.ratio is None else figure.ratio
    return p, ratio / (1 - (figure.limit or 0.0))


def _urgency(judged_node: JudgedNode) -> tuple[Any, ...]:
    near = _nearness(judged_node.telling)
    return (URGENT.index(judged_node.verdict), *near, node_order(judged_node.name))
