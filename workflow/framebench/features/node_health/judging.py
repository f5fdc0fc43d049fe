"""Judgement of nodes: which are worse than they should be, and which failed.

1. Figures of equal name, unit and hardware are compared. A node with unique hardware has no others.
2. Our rules: :func:`statistics.nodes.judge`, with the margin of the first rule that matches a
   figure's name.
3. SuperBench's rules, as its data diagnosis defines them. Each value from SuperBench is a figure;
   our own figures are medians of the repeats.
4. A node has failed if another node has a figure that it was tried for and lacks."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from ...records.run import Run
from ...statistics.verdicts import BASELINE, CANNOT_TELL, NO_DIFFERENCE, OTHERS, SLOWER
from .figures import NodeMeasurement, node_order, oriented
from .rules import health
from .rules.health import Health, Kept
from .rules.own import NodeRule, OwnRules
from .rules.superbench import FAILURES, MULTI, STORED, VARIANCE, TheirRule, TheirRules, in_baseline

DEFECTIVE, FAILED, PASSED = "defective", "failed", "passed"
#: Verdicts, most urgent first.
URGENT = (SLOWER, DEFECTIVE, FAILED, CANNOT_TELL, NO_DIFFERENCE, PASSED)
#: Verdicts that administrators are told of.
NAMED = (SLOWER, DEFECTIVE, FAILED)
_RETURN_CODE = "return_code"


class JudgedFigure(NamedTuple):
    """Result of comparing a node's figure with one side or judging it by one rule.

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

    ``telling``: figure that determined the verdict, or is nearest to its limit; None if no figure
    was judged."""

    name: str
    hardware: str
    verdict: str
    telling: JudgedFigure | None
    judged: Sequence[JudgedFigure]
    reason: str


def judge(figures: Sequence[NodeMeasurement], given: Health) -> list[JudgedNode]:
    """Return the judged nodes, most urgent first.

    The result does not depend on the order of ``figures``."""
    if isinstance(given.rules, OwnRules):
        rows = [*_by_ours(figures, given.rules, given.baseline)]
    else:
        rows = [*_by_theirs(figures, given.rules, given.baseline)]
    rows += _failed(figures)
    by_node: dict[str, list[JudgedFigure]] = {figure.node: [] for figure in figures}
    for row in rows:
        by_node[row.figure.node].append(row)
    hardware = {figure.node: figure.hardware for figure in figures}
    nodes = [_node(name, hardware[name], some) for name, some in by_node.items()]
    return sorted(nodes, key=_urgency)


def baseline_text(nodes: Iterable[JudgedNode], figures: Sequence[NodeMeasurement]) -> str:
    """Return a baseline file with the repeats of all nodes with good verdicts; "" without any."""
    good = {node.name for node in nodes if node.verdict not in NAMED}
    kept: dict[str, list[float]] = defaultdict(list)
    units: dict[str, str] = {}
    for figure in figures:
        if figure.node in good and figure.values:
            kept[figure.name] += figure.values
            units[figure.name] = figure.unit
    found = {name: Kept(tuple(values), units[name]) for name, values in kept.items()}
    return health.baseline_text(found) if found else ""


def _by_ours(
    figures: Sequence[NodeMeasurement], rules: OwnRules, baseline: Mapping[str, Kept]
) -> Iterator[JudgedFigure]:
    from . import statistics as nodes  # slow to import, and plans need only names

    groups: dict[tuple[str, str, str], dict[str, NodeMeasurement]] = defaultdict(dict)
    for one in figures:
        if one.values and min(one.values) > 0 and rules.rule_of(one.name):
            groups[one.name, one.unit, one.hardware][one.node] = one
    asked: list[nodes.NodeFigure] = []
    behind: dict[int, Mapping[str, NodeMeasurement]] = {}
    for (name, unit, _), some in groups.items():
        rule = _rule_of(rules, name)
        better = next(iter(some.values())).better
        kept = baseline.get(name)
        known = kept.values if kept and kept.unit == unit and min(kept.values) > 0 else ()
        values = {node: measurement.upwards for node, measurement in some.items()}
        figure = nodes.NodeFigure(
            name, values, rule.worse_by, oriented(known, better), rule.against
        )
        asked.append(figure)
        behind[id(figure)] = some
        if len(some) < nodes.FEWEST and not (figure.baseline and BASELINE in rule.against):
            why = f"needs {nodes.FEWEST} nodes of one kind of hardware, or a baseline"
            yield from (JudgedFigure(measurement, rule.name, OTHERS, CANNOT_TELL, reason=why)
                        for measurement in some.values())  # fmt: skip
        elif OTHERS not in rule.against and not figure.baseline:
            why = "needs a baseline that has this figure"
            yield from (JudgedFigure(measurement, rule.name, BASELINE, CANNOT_TELL, reason=why)
                        for measurement in some.values())  # fmt: skip
    claims = nodes.judge(asked, rules.false_alarms)
    for claim in claims:
        one = behind[id(claim.figure)][claim.node]
        (reference,) = oriented([claim.reference], one.better)
        is_too_few = claim.verdict == CANNOT_TELL and claim.p_adjusted is None
        kept_repeats = len(claim.figure.baseline) if claim.side == BASELINE else None
        few = nodes.repeats_needed(
            len(claim.figure.values), len(claims), rules.false_alarms, kept_repeats
        )
        yield JudgedFigure(
            one, _rule_of(rules, one.name).name, claim.side, claim.verdict, reference, claim.ratio,
            claim.interval, claim.figure.margin, claim.p_adjusted,
            f"needs about {few} repeats" if is_too_few else "",
        )  # fmt: skip


def _rule_of(rules: OwnRules, name: str) -> NodeRule:
    rule = rules.rule_of(name)
    assert rule is not None, "a figure without a rule is not judged"
    return rule


def _by_theirs(
    figures: Sequence[NodeMeasurement], rules: TheirRules, baseline: Mapping[str, Kept]
) -> Iterator[JudgedFigure]:
    by_node: dict[str, list[_Reading]] = defaultdict(list)
    for figure in figures:
        by_node[figure.node] += _readings(figure)
    known = {reading.names[0]: reading for some in by_node.values() for reading in some}
    first = {figure.node: figure for figure in reversed(figures)}
    for node, some in by_node.items():
        stored: dict[str, float | dict[str, float]] = {}
        broken: dict[str, list[JudgedFigure]] = {}
        for rule in rules.rules:
            of_rule = [reading for reading in some if rule.is_of(*reading.names)]
            if rule.function == STORED:
                stored[rule.name] = {reading.figure.name: reading.value for reading in of_rule}
                broken[rule.name] = [_verdict(reading, rule, False) for reading in of_rule]
                continue
            if rule.function == MULTI:
                rows = [_of_several(first[node], rule, stored, broken)]
            else:
                rows = [_judge_by(reading, rule, baseline) for reading in of_rule]
            if rule.function == FAILURES:
                rows += _missing(first[node], rule, some, known)
            broken[rule.name] = [row for row in rows if row.verdict == DEFECTIVE]
            stored[rule.name] = len(broken[rule.name])
            for row in rows:
                yield row._replace(verdict=PASSED) if rule.stores else row


class _Reading(NamedTuple):
    """A value as SuperBench judges it. ``names``: names that match it in rules and baselines."""

    figure: NodeMeasurement
    names: tuple[str, ...]
    value: float


def _readings(measurement: NodeMeasurement) -> Iterator[_Reading]:
    """Yield each value of an imported figure, or the median of one of ours.

    Names of several values include the number of the run. A return code other than 0 is in the
    reason of the run."""
    if not measurement.is_superbench:
        if measurement.middle is not None:
            yield _Reading(measurement, (measurement.name,), measurement.middle)
        return
    values = [(run, value) for run in measurement.runs if (value := _value(run)) is not None]
    head, _, metric = measurement.name.rpartition("/")
    for run, value in values:
        numbered = f"{head}/{run.repeat - 1}/{metric}"
        name = numbered if len(values) > 1 else measurement.name
        figure = replace(measurement, name=name, values=(value,), runs=(run,))
        yield _Reading(figure, (measurement.name, numbered), value)


def _value(run: Run) -> float | None:
    code = re.fullmatch(r"return code (-?\d+)", run.reason)
    return float(code[1]) if code else run.figure


def _verdict(reading: _Reading, rule: TheirRule, is_broken: bool) -> JudgedFigure:
    verdict = DEFECTIVE if is_broken else PASSED
    reason = "; ".join(filter(None, (run.reason for run in reading.figure.runs)))
    return JudgedFigure(reading.figure, rule.category, rule.function, verdict, reason=reason)


def _judge_by(reading: _Reading, rule: TheirRule, baseline: Mapping[str, Kept]) -> JudgedFigure:
    """Return the judgement of a value by a rule that matches it."""
    value, better = reading.value, reading.figure.better
    if rule.function != VARIANCE:
        return _verdict(reading, rule, rule.meets(value))
    generator = (kept for name in reading.names if (kept := in_baseline(baseline, name)))
    kept = next(generator, None)
    if kept is None or not (reference := median(kept.values)):
        why = "the baseline has no such figure" if kept is None else "the baseline is 0"
        return _verdict(reading, rule, False)._replace(verdict=CANNOT_TELL, reason=why)
    ratio = value / reference if better == "higher" else reference / value if value else None
    judged = _verdict(reading, rule, rule.meets((value - reference) / reference))
    return judged._replace(reference=reference, ratio=ratio)


def _of_several(
    first: NodeMeasurement,
    rule: TheirRule,
    stored: Mapping[str, float | dict[str, float]],
    broken: Mapping[str, Sequence[JudgedFigure]],
) -> JudgedFigure:
    """Return the judgement of a node by a rule that combines other rules.

    The figure is the first one that these rules found broken or stored, else ``first``."""
    decisive = next((row for name in rule.reads for row in broken[name]), None)
    row = decisive or JudgedFigure(first, rule.category, rule.function, PASSED)
    verdict = DEFECTIVE if rule.meets(stored) else PASSED
    return row._replace(rule=rule.category, side=rule.function, verdict=verdict)


def _missing(
    first: NodeMeasurement, rule: TheirRule, some: Sequence[_Reading], known: Mapping[str, _Reading]
) -> Iterator[JudgedFigure]:
    """Yield a judgement per metric of a failure check that lacks figures on a node.

    A figure is lacking if another node has it, or if no node has any. Applies only to SuperBench's
    results, which have return codes. ``first``: any figure of the node."""
    if not first.is_superbench:
        return
    own = {reading.names[0] for reading in some}
    for metrics in rule.metrics:
        matched = [
            name for name, reading in known.items() if any(map(metrics.match, reading.names))
        ]
        why = "another node has it" if matched else "no node has it"
        lacking = sorted({*matched} - own) if matched else [metrics.text]
        if lacking:
            figure = replace(
                first, name=lacking[0], unit="", values=(), status=FAILED, reason=why, flags="",
                runs=(),
            )  # fmt: skip
            reason = f"the node has no {', '.join(lacking)}; {why}"
            yield JudgedFigure(figure, rule.category, FAILURES, DEFECTIVE, reason=reason)


def unmatched(rules: TheirRules, figures: Sequence[NodeMeasurement]) -> list[str]:
    """Return the metrics of rules that match no figure of any node."""
    names = [reading.names for figure in figures for reading in _readings(figure)]
    return [
        f"rule {rule.name}: {metrics.text}"
        for rule in rules.rules
        for metrics in rule.metrics
        if not any(metrics.match(name) for some in names for name in some)
    ]


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
        return JudgedNode(name, hardware, CANNOT_TELL, None, (), "no rule is of any of its figures")
    verdict = min((judged_figure.verdict for judged_figure in judged), key=URGENT.index)
    same = [judged_figure for judged_figure in judged if judged_figure.verdict == verdict]
    telling = min(same, key=_nearness)
    reason = telling.reason
    if verdict == CANNOT_TELL and len(same) < len(judged):
        text = f"of {len(same)} of {len(judged)} figures it cannot be told"
        reason = f"{text} ({reason})" if reason else text
    return JudgedNode(name, hardware, verdict, telling, judged, reason)


def _nearness(figure: JudgedFigure) -> tuple[float, ...]:
    """Return a sort key: by p-value, then by distance from the limit."""
    p = 1.0 if figure.p_adjusted is None else figure.p_adjusted
    ratio = math.inf if figure.ratio is None else figure.ratio
    return p, ratio / (1 - (figure.limit or 0.0))


def _urgency(judged_node: JudgedNode) -> tuple[Any, ...]:
    near = _nearness(judged_node.telling) if judged_node.telling else (1.0, math.inf)
    return (URGENT.index(judged_node.verdict), *near, node_order(judged_node.name))
