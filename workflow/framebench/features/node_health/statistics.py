"""Find nodes that are worse than the others, or than a kept baseline, by more than a margin.

All figures are positive, and more is better. A node counts as healthy if none of its figures is
truly worse than the others' by more than the figure's margin, whichever few of the others are left
out (step 2). Nodes of one kind always differ a little; that is no defect.

1. Each figure of a node is compared with the repeats of all other nodes together, less the margin,
   by a one-sided rank sum test (:func:`intervals.one_sided_rank_test`). It assumes nothing about
   the shape of the noise, and a single outlier moves the ranks by little. Fewer than FEWEST nodes
   are not compared: of two, neither says which is the odd one.
2. Bad nodes among the others would hide it. So the figure is also compared with the others without
   the worst 1, 2, .. of them, by their medians, up to a quarter. Each p-value is multiplied by the
   number of ways to leave out so many nodes, and by the number of such tests (Bonferroni over all
   sets that might have been left out). The choice by measured values then costs no validity. The
   smallest p-value counts.
3. The figure is also compared with all repeats of the baseline, where the baseline has it.
4. A test is excluded from the family if even the most extreme ranks of its few repeats are too
   likely to show anything (Tarone). This depends on numbers of repeats alone.
5. The p-values are adjusted for all remaining tests, of all nodes, figures and both sides (Holm).
   The chance that any healthy node is called slower is at most FALSE_ALARMS, under any dependence.
   A simulation checks it (tests/framebench/features/node_health/test_false_alarms.py).
6. A figure that is not called slower shows no difference if the opposite claim, worse by less than
   the margin, is shown against the others without the worst quarter, and against the baseline
   (level of one figure, not adjusted). Else the verdict is "cannot tell".

Sources:

- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, section 4.1.
- Holm, "A Simple Sequentially Rejective Multiple Test Procedure", *Scandinavian Journal of
  Statistics* 6, 1979.
- Tarone, "A Modified Bonferroni Method for Discrete Data", *Biometrics* 46, 1990.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...statistics import descriptive, intervals, margins
from ...statistics.verdicts import (
    BASELINE,
    CANNOT_TELL,
    FALSE_ALARMS,
    NO_DIFFERENCE,
    OTHERS,
    SIDES,
    SLOWER,
)

#: Smallest number of nodes that are compared with each other.
FEWEST = 3


@dataclass(frozen=True)
class NodeFigure:
    """One figure of all nodes.
    ``values``: repeats by node, more is better; ``baseline``: repeats of the kept baseline, () if
    it has none; ``margin``: the fraction by which a node may be worse; ``against``: some of SIDES.
    """

    name: str
    values: Mapping[str, Sequence[float]]
    margin: float
    baseline: Sequence[float] = ()
    against: Collection[str] = SIDES


class Claim(NamedTuple):
    """A comparison of one figure of a node with one side.

    ``ratio``: of the medians. ``interval``: of the ratio; None with too few repeats.
    ``p_adjusted``: that the node is worse by more than the margin; None if ranks cannot show it."""

    node: str
    figure: NodeFigure
    side: str
    middle: float
    reference: float
    ratio: float
    interval: intervals.Interval | None
    p_adjusted: float | None
    verdict: str


class _Reference(NamedTuple):
    """Repeats that a node is compared with. ``choices``: ways to leave out so many others."""

    values: Sequence[float]
    choices: int


class _Test(NamedTuple):
    """A test of one figure of a node against one side.
    ``references``: what it is compared with, with ever fewer of the other nodes."""

    node: str
    figure: NodeFigure
    side: str
    own: Sequence[float]
    references: Sequence[_Reference]

    @property
    def least(self) -> float:
        """Smallest p-value that the test can attain."""
        count = len(self.own)
        extremes = (
            reference.choices / math.comb(count + len(reference.values), count)
            for reference in self.references
        )
        return len(self.references) * min(extremes)


class _Shown(NamedTuple):
    """Unadjusted p-values of a test, and the reference with the strongest evidence."""

    beyond: float
    within: float
    reference: Sequence[float]


def judge(figures: Iterable[NodeFigure], level: float = FALSE_ALARMS) -> list[Claim]:
    """Return a claim for each figure, node and side, in the order of ``figures`` and of their
    nodes. The claims do not depend on the order of the figures."""
    tests = [test for figure in figures for test in _tests(figure)]
    shown = [_shown(test) for test in tests]
    adjusted = _adjusted(tests, [one.beyond for one in shown], level)
    return [
        _claim(test, p, both, level) for test, p, both in zip(tests, adjusted, shown, strict=True)
    ]


def repeats_needed(
    nodes: int, tests: int, level: float = FALSE_ALARMS, baseline: int | None = None
) -> int:
    """Return the fewest repeats with which the worst of all nodes can be called slower.
    ``tests``: number of tests in the family. A node is compared with the other ``nodes``, each with
    as many repeats and at least 2, or with a ``baseline`` of so many repeats."""
    repeats, ways = 1, 1 + nodes // 4 if baseline is None else 1
    while True:
        beside = (nodes - 1) * repeats if baseline is None else baseline
        if math.comb(repeats + beside, repeats) * level >= tests * ways:
            return repeats
        repeats += 1


def _tests(figure: NodeFigure) -> Iterable[_Test]:
    measured = {node: values for node, values in figure.values.items() if values}
    for node, own in measured.items():
        if OTHERS in figure.against and len(measured) >= FEWEST:
            yield _Test(node, figure, OTHERS, own, _others(node, measured))
        if BASELINE in figure.against and figure.baseline:
            yield _Test(node, figure, BASELINE, own, [_Reference(figure.baseline, 1)])


def _others(node: str, measured: Mapping[str, Sequence[float]]) -> list[_Reference]:
    """Return all other nodes, then without the worst of them, up to a quarter of the nodes."""
    others = sorted(
        (descriptive.median(values), name) for name, values in measured.items() if name != node
    )
    return [
        _Reference(
            [value for _, name in others[left_out:] for value in measured[name]],
            math.comb(len(others), left_out),
        )
        for left_out in range(len(measured) // 4 + 1)
        if len(others) - left_out >= FEWEST - 1
    ]


def _shown(test: _Test) -> _Shown:
    claims = [
        margins.of_sets(reference.values, test.own, test.figure.margin)
        for reference in test.references
    ]
    counted = [
        reference.choices * claim.beyond
        for reference, claim in zip(test.references, claims, strict=True)
    ]
    telling = counted.index(min(counted))
    beyond = min(1.0, len(counted) * counted[telling])
    return _Shown(beyond, claims[-1].within, test.references[telling].values)


def _adjusted(
    tests: Sequence[_Test], p_values: Sequence[float], level: float
) -> list[float | None]:
    """Adjust p-values for the family of tests; None for tests outside it.

    The attainable p-values limit the size of the family (Tarone's K)."""
    least = sorted(test.least for test in tests)
    sizes = range(1, len(tests) + 1)
    size = next((n for n in sizes if bisect_right(least, level / n) <= n), 1)
    able = [index for index, test in enumerate(tests) if test.least <= level / size]
    in_family = intervals.family_wise([p_values[index] for index in able])
    results: list[float | None] = [None] * len(tests)
    for index, p in zip(able, in_family, strict=True):
        results[index] = p
    return results


def _claim(test: _Test, p: float | None, shown: _Shown, level: float) -> Claim:
    own, reference = descriptive.median(test.own), descriptive.median(shown.reference)
    verdict = CANNOT_TELL
    if p is not None and p <= level:
        verdict = SLOWER
    elif shown.within <= margins.LEVEL:
        verdict = NO_DIFFERENCE
    interval = intervals.ratio_interval(shown.reference, test.own)
    return Claim(
        test.node, test.figure, test.side, own, reference, own / reference, interval, p, verdict
    )
