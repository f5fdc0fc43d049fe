"""Which node is worse than it should be, by our rules or by SuperBench's, and which has failed.

1. Figures of the same name, unit and kind of hardware are held against each other; a node that is
   alone in its kind has no others.
2. By our rules: :func:`statistics.nodes.judge`, with the margin of the first rule that a figure's
   name matches.
3. By SuperBench's: a rule that a figure's median breaks, by the definitions of its data diagnosis.
4. A node has failed where another node has a figure and it has none, though it was tried.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from ...config.node_rules import health
from ...config.node_rules.health import Health, Kept
from ...config.node_rules.own import OwnRules, Rule
from ...config.node_rules.superbench import MULTI, VALUE, VARIANCE, TheirRule, TheirRules
from ...statistics.verdicts import BASELINE, CANNOT_TELL, NO_DIFFERENCE, OTHERS, SLOWER
from .figures import Measured, node_order, oriented

DEFECTIVE, FAILED, PASSED = "defective", "failed", "passed"
#: Of a node, the most urgent first.
URGENT = (SLOWER, DEFECTIVE, FAILED, CANNOT_TELL, NO_DIFFERENCE, PASSED)
#: Those that an administrator is told of.
NAMED = (SLOWER, DEFECTIVE, FAILED)
_RETURN_CODE = "return_code"


class Judged(NamedTuple):
    """A figure of a node, held against one side or by one rule. ``reference``: in the figure's
    unit; ``ratio``: above 1 is better; ``limit``: the part by which the node may be worse."""

    figure: Measured
    rule: str
    side: str
    verdict: str
    reference: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    limit: float | None = None
    p_adjusted: float | None = None
    reason: str = ""


class Node(NamedTuple):
    """A node and what is said of it. ``telling``: the figure that told, or the one that comes
    nearest to it; None where no figure was judged."""

    name: str
    hardware: str
    verdict: str
    telling: Judged | None
    judged: Sequence[Judged]
    reason: str


def judge(figures: Sequence[Measured], given: Health) -> list[Node]:
    """The most urgent node first. The same figures, in whichever order they come, give the same."""
    if isinstance(given.rules, OwnRules):
        rows = [*_by_ours(figures, given.rules, given.baseline)]
    else:
        rows = [*_by_theirs(figures, given.rules, given.baseline)]
    rows += _failed(figures)
    by_node: dict[str, list[Judged]] = {one.node: [] for one in figures}
    for row in rows:
        by_node[row.figure.node].append(row)
    hardware = {one.node: one.hardware for one in figures}
    nodes = [_node(name, hardware[name], some) for name, some in by_node.items()]
    return sorted(nodes, key=_urgency)


def baseline_text(nodes: Iterable[Node], figures: Sequence[Measured]) -> str:
    """A baseline of ours: the repeats of all nodes of which nothing bad is said; "" without any."""
    good = {one.name for one in nodes if one.verdict not in NAMED}
    kept: dict[str, list[float]] = defaultdict(list)
    units: dict[str, str] = {}
    for one in figures:
        if one.node in good and one.values:
            kept[one.name] += one.values
            units[one.name] = one.unit
    found = {name: Kept(tuple(values), units[name]) for name, values in kept.items()}
    return health.baseline_text(found) if found else ""


def _by_ours(
    figures: Sequence[Measured], rules: OwnRules, baseline: Mapping[str, Kept]
) -> Iterator[Judged]:
    from ...statistics import nodes  # numpy takes its time, and a plan only asks for names

    groups: dict[tuple[str, str, str], dict[str, Measured]] = defaultdict(dict)
    for one in figures:
        if one.values and min(one.values) > 0 and rules.rule_of(one.name):
            groups[one.name, one.unit, one.hardware][one.node] = one
    asked: list[nodes.Figure] = []
    behind: dict[int, Mapping[str, Measured]] = {}
    for (name, unit, _), some in groups.items():
        rule = _rule_of(rules, name)
        better = next(iter(some.values())).better
        kept = baseline.get(name)
        known = kept.values if kept and kept.unit == unit and min(kept.values) > 0 else ()
        values = {node: one.upwards for node, one in some.items()}
        figure = nodes.Figure(name, values, rule.worse_by, oriented(known, better), rule.against)
        asked.append(figure)
        behind[id(figure)] = some
        if len(some) < nodes.FEWEST and not (figure.baseline and BASELINE in rule.against):
            why = f"needs {nodes.FEWEST} nodes of one kind of hardware, or a baseline"
            yield from (Judged(one, rule.name, OTHERS, CANNOT_TELL, reason=why)
                        for one in some.values())  # fmt: skip
        elif OTHERS not in rule.against and not figure.baseline:
            why = "needs a baseline that has this figure"
            yield from (Judged(one, rule.name, BASELINE, CANNOT_TELL, reason=why)
                        for one in some.values())  # fmt: skip
    claims = nodes.judge(asked, rules.false_alarms)
    for claim in claims:
        one = behind[id(claim.figure)][claim.node]
        (reference,) = oriented([claim.reference], one.better)
        is_too_few = claim.verdict == CANNOT_TELL and claim.p_adjusted is None
        kept_repeats = len(claim.figure.baseline) if claim.side == BASELINE else None
        few = nodes.repeats_needed(
            len(claim.figure.values), len(claims), rules.false_alarms, kept_repeats
        )
        yield Judged(
            one, _rule_of(rules, one.name).name, claim.side, claim.verdict, reference, claim.ratio,
            claim.interval, claim.figure.margin, claim.p_adjusted,
            f"needs about {few} repeats" if is_too_few else "",
        )  # fmt: skip


def _rule_of(rules: OwnRules, name: str) -> Rule:
    rule = rules.rule_of(name)
    assert rule is not None, "a figure without a rule is not judged"
    return rule


def _by_theirs(
    figures: Sequence[Measured], rules: TheirRules, baseline: Mapping[str, Kept]
) -> Iterator[Judged]:
    by_node: dict[str, list[Measured]] = defaultdict(list)
    for one in figures:
        by_node[one.node].append(one)
    for some in by_node.values():
        broken: dict[str, list[Judged]] = {}
        for rule in rules.rules:
            if rule.function == MULTI:
                if rule.meets({name: len(rows) for name, rows in broken.items()}):
                    first = next((rows[0] for rows in broken.values() if rows), None)
                    if first:
                        yield first._replace(rule=rule.category, verdict=DEFECTIVE)
                continue
            held = [row for one in some if (row := _held(one, rule, baseline))]
            broken[rule.name] = [row for row in held if row.verdict == DEFECTIVE]
            for row in held:
                yield row._replace(verdict=PASSED) if rule.stores else row


def _held(one: Measured, rule: TheirRule, baseline: Mapping[str, Kept]) -> Judged | None:
    """A figure against a rule; None where the rule is not of it, or lacks what it needs."""
    if not any(pattern.search(one.name) for pattern in rule.metrics):
        return None
    value, reason = one.middle, ""
    if value is None and one.status == FAILED and one.name.endswith(_RETURN_CODE):
        value, reason = 1.0, one.reason  # another than 0; which, the reason says
    if value is None:
        return None
    if rule.function == VALUE:
        verdict = DEFECTIVE if rule.meets(value) else PASSED
        return Judged(one, rule.category, VALUE, verdict, reason=reason)
    kept = baseline.get(one.name)
    if kept is None or not (reference := median(kept.values)):
        why = "the baseline has no such figure"
        return Judged(one, rule.category, VARIANCE, CANNOT_TELL, reason=why)
    verdict = DEFECTIVE if rule.meets(value / reference - 1) else PASSED
    ratio = value / reference if one.better == "higher" else reference / value if value else None
    return Judged(one, rule.category, VARIANCE, verdict, reference, ratio)


def _failed(figures: Sequence[Measured]) -> Iterator[Judged]:
    """Those that a node lacks and another one has; where no node has it, it says nothing of any."""
    had = {one.name for one in figures if one.values}
    for one in figures:
        alone = one.status == FAILED and one.name.endswith(_RETURN_CODE)
        if not one.values and (one.name in had or alone):
            yield Judged(one, "", "", FAILED, reason=f"{one.status}: {one.reason}")


def _node(name: str, hardware: str, judged: Sequence[Judged]) -> Node:
    if not judged:
        return Node(name, hardware, CANNOT_TELL, None, (), "no rule is of any of its figures")
    verdict = min((one.verdict for one in judged), key=URGENT.index)
    same = [one for one in judged if one.verdict == verdict]
    telling = min(same, key=_nearness)
    reason = telling.reason
    if verdict == CANNOT_TELL and len(same) < len(judged):
        of = f"of {len(same)} of {len(judged)} figures it cannot be told"
        reason = f"{of} ({reason})" if reason else of
    return Node(name, hardware, verdict, telling, judged, reason)


def _nearness(one: Judged) -> tuple[float, ...]:
    """Sorts what tells most first: by the p-value, then by how far it lies from the limit."""
    p = 1.0 if one.p_adjusted is None else one.p_adjusted
    ratio = math.inf if one.ratio is None else one.ratio
    return p, ratio / (1 - (one.limit or 0.0))


def _urgency(one: Node) -> tuple[Any, ...]:
    near = _nearness(one.telling) if one.telling else (1.0, math.inf)
    return (URGENT.index(one.verdict), *near, node_order(one.name))
