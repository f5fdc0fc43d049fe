"""Find nodes that are worse than the others, or than a kept baseline, by more than a margin.

All figures are such that more is better and are positive. A node counts as healthy while none of
its figures is truly worse by more than the figure's margin than those of the others are, whichever
few of these (step 2) are left out: nodes of one kind differ by a little for good, and that is no
defect.

1. Each figure of a node is held against the repeats of all other nodes together, less the margin,
   by a one-sided rank sum test (:func:`intervals.one_sided_rank_test`): nothing is assumed about
   the shape of the noise, and a single wild repeat moves ranks by little. Fewer than FEWEST nodes
   are not held against each other: of two, neither says which is the odd one.
2. Because bad nodes among the others would hide it, it is also held against the others without the
   worst 1, 2, .. of them, by their medians, up to a quarter. Each p-value counts as often as there
   are ways to leave out so many, and as there are such numbers: so it does not matter that those
   left out were chosen by what they measured (Bonferroni over all sets that might have been). The
   least counts.
3. Likewise against the repeats of the baseline, where it has the figure, all of them.
4. A test that could not show anything, because with so few repeats even the most extreme ranks
   are too likely, is no part of the family (Tarone); which these are depends on numbers of repeats
   alone.
5. The p-values are adjusted for all tests that are left, of all nodes, figures and both sides
   (Holm): the chance that any healthy node at all is called slower is at most FALSE_ALARMS, however
   the tests depend on each other. A simulation holds that
   (tests/framebench/health/test_false_alarms.py).
6. A figure that is not called shows no difference where the opposite claim, worse by less than the
   margin, is shown against the others without the worst quarter, and against the baseline (level
   of one figure, not adjusted); else it cannot be told.

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

from . import descriptive, intervals, margins
from .verdicts import (
    BASELINE,
    CANNOT_TELL,
    FALSE_ALARMS,
    NO_DIFFERENCE,
    OTHERS,
    SIDES,
    SLOWER,
)

#: Nodes that are held against each other, at least.
FEWEST = 3


@dataclass(frozen=True)
class NodeFigure:
    """One figure of all nodes. ``values``: repeats by node, more is better; ``baseline``: repeats
    of the kept baseline, () where it has none; ``margin``: the part by which a node may be worse;
    ``against``: of SIDES."""

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
    """Repeats that a node is held against. ``choices``: ways to leave out so many of the others."""

    values: Sequence[float]
    choices: int


class _Test(NamedTuple):
    """``references``: with fewer and fewer of the others."""

    node: str
    figure: NodeFigure
    side: str
    own: Sequence[float]
    references: Sequence[_Reference]

    @property
    def least(self) -> float:
        """The smallest p-value that it can have."""
        count = len(self.own)
        extremes = (
            one.choices / math.comb(count + len(one.values), count) for one in self.references
        )
        return len(self.references) * min(extremes)


class _Shown(NamedTuple):
    """The p-values of a test, not adjusted, and the reference that tells most."""

    beyond: float
    within: float
    reference: Sequence[float]


def judge(figures: Iterable[NodeFigure], level: float = FALSE_ALARMS) -> list[Claim]:
    """A claim for each figure of each node and each side that it has, in the order of ``figures``
    and of their nodes. The same figures give the same claims, in whichever order they come."""
    tests = [one for figure in figures for one in _tests(figure)]
    shown = [_shown(one) for one in tests]
    adjusted = _adjusted(tests, [one.beyond for one in shown], level)
    return [
        _claim(one, p, both, level) for one, p, both in zip(tests, adjusted, shown, strict=True)
    ]


def repeats_needed(
    nodes: int, tests: int, level: float = FALSE_ALARMS, baseline: int | None = None
) -> int:
    """The fewest repeats with which a node that lies below all that it is held against is called
    slower, where there are so many ``tests``: as many of each of so many ``nodes``, at least 2, or
    those of a ``baseline``."""
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
    """All others, and these without the worst of them, up to a quarter of the nodes."""
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


def _shown(one: _Test) -> _Shown:
    claims = [
        margins.of_sets(reference.values, one.own, one.figure.margin)
        for reference in one.references
    ]
    counted = [
        reference.choices * claim.beyond
        for reference, claim in zip(one.references, claims, strict=True)
    ]
    telling = counted.index(min(counted))
    beyond = min(1.0, len(counted) * counted[telling])
    return _Shown(beyond, claims[-1].within, one.references[telling].values)


def _adjusted(
    tests: Sequence[_Test], p_values: Sequence[float], level: float
) -> list[float | None]:
    """Adjust p-values for the family of tests; None for tests outside it.

    The attainable p-values limit the size of the family (Tarone's K)."""
    least = sorted(one.least for one in tests)
    sizes = range(1, len(tests) + 1)
    size = next((n for n in sizes if bisect_right(least, level / n) <= n), 1)
    able = [index for index, one in enumerate(tests) if one.least <= level / size]
    in_family = intervals.family_wise([p_values[index] for index in able])
    found: list[float | None] = [None] * len(tests)
    for index, p in zip(able, in_family, strict=True):
        found[index] = p
    return found


def _claim(one: _Test, p: float | None, shown: _Shown, level: float) -> Claim:
    own, reference = descriptive.median(one.own), descriptive.median(shown.reference)
    verdict = CANNOT_TELL
    if p is not None and p <= level:
        verdict = SLOWER
    elif shown.within <= margins.LEVEL:
        verdict = NO_DIFFERENCE
    interval = intervals.ratio_interval(shown.reference, one.own)
    return Claim(
        one.node, one.figure, one.side, own, reference, own / reference, interval, p, verdict
    )
