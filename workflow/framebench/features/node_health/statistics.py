"""Find nodes that are worse than the others, or than a baseline, by more than a margin.

All figures are positive, and more is better. A node counts as healthy if none of its figures is
truly worse than the others' by more than the figure's margin, even if a few of the others are left
out (step 2). Nodes of one kind always differ a little; this is not a defect.

1. Each figure of a node is compared with the repeats of all other nodes together, less the margin,
   by a one-sided rank sum test (:func:`intervals.one_sided_rank_test`). It assumes nothing about
   the shape of the noise, and a single outlier moves the ranks by little. Fewer than FEWEST nodes
   are not compared: if two differ, it is unknown which one is bad.
2. Bad nodes among the others could hide another one. So the figure is also compared with the others
   without the 1, 2, .. nodes with the worst medians, up to a quarter. Each p-value is multiplied by
   the number of ways to leave out that many nodes, and by the number of such tests (Bonferroni over
   all sets that might have been left out), so leaving out nodes by their values stays valid. The
   smallest p-value counts.
3. The figure is also compared with all repeats of the baseline, where the baseline has it.
4. The p-values are adjusted for all tests, of all nodes, figures and both sides (Holm). The chance
   that any healthy node is called slower is at most FALSE_ALARMS, under any dependence. A
   simulation checks it (tests/framebench/features/node_health/test_judging.py).
5. A figure that is not called slower shows no difference if the opposite claim, worse by less than
   the margin, is shown against the others without the worst quarter, and against the baseline
   (level of one figure, not adjusted). Else the verdict is "cannot tell".

Sources:

- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, section 4.1.
- Holm, "A Simple Sequentially Rejective Multiple Test Procedure", *Scandinavian Journal of
  Statistics* 6, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...statistics import intervals
from ...statistics.descriptive import median
from ...statistics.sequential import LEVEL
from ...statistics.verdicts import (
    BASELINE,
    CANNOT_TELL,
    FALSE_ALARMS,
    NO_DIFFERENCE,
    OTHERS,
    SLOWER,
)

#: Smallest number of nodes that are compared with each other.
FEWEST = 3


@dataclass(frozen=True)
class NodeFigure:
    """One figure of all nodes.
    ``key``: identifies it; ``values``: repeats by node, more is better; ``margin``: the fraction by
    which a node may be worse; ``baseline``: repeats of the baseline, () if it has none."""

    key: Any
    values: Mapping[str, Sequence[float]]
    margin: float
    baseline: Sequence[float] = ()


class Claim(NamedTuple):
    """A comparison of one figure of a node with the other nodes or the baseline (``side``).

    ``reference``: median of that side. ``ratio``: ratio of the medians. ``interval``: interval of
    the ratio; None with too few repeats. ``p_adjusted``: p-value for being worse by more than the
    margin."""

    node: str
    figure: NodeFigure
    side: str
    reference: float
    ratio: float
    interval: intervals.Interval | None
    p_adjusted: float = 1.0
    verdict: str = CANNOT_TELL


def judge(figures: Iterable[NodeFigure], level: float = FALSE_ALARMS) -> list[Claim]:
    """Return a claim for each figure, node and side, in the order of ``figures`` and of their
    nodes. The claims do not depend on the order of the figures."""
    tests = [test for figure in figures for test in _tests(figure)]
    adjusted = intervals.family_wise([beyond for _, beyond, _ in tests])
    claims = []
    for (claim, _, within), p in zip(tests, adjusted, strict=True):
        verdict = SLOWER if p <= level else NO_DIFFERENCE if within <= LEVEL else CANNOT_TELL
        claims.append(claim._replace(p_adjusted=p, verdict=verdict))
    return claims


def _tests(figure: NodeFigure) -> Iterator[tuple[Claim, float, float]]:
    """Yield a claim for each node and side, without a verdict, and two unadjusted p-values: for the
    node being worse by more than the margin, and by less."""
    measured = {node: values for node, values in figure.values.items() if values}
    for node in measured:
        if len(measured) >= FEWEST:
            yield _test(node, figure, OTHERS, _others(node, measured))
        if figure.baseline:
            yield _test(node, figure, BASELINE, [(figure.baseline, 1)])


def _others(
    node: str, measured: Mapping[str, Sequence[float]]
) -> list[tuple[Sequence[float], int]]:
    """Return the repeats of all other nodes, then without the worst 1, 2, .. of them, up to a
    quarter of the nodes; each with the number of ways to leave out that many."""
    others = sorted((median(values), name) for name, values in measured.items() if name != node)
    return [
        (
            [value for _, name in others[left_out:] for value in measured[name]],
            math.comb(len(others), left_out),
        )
        for left_out in range(len(measured) // 4 + 1)
        if len(others) - left_out >= FEWEST - 1
    ]


def _test(
    node: str, figure: NodeFigure, side: str, references: Sequence[tuple[Sequence[float], int]]
) -> tuple[Claim, float, float]:
    factor, own = 1 - figure.margin, figure.values[node]
    claims = [
        intervals.one_sided_rank_test([factor * value for value in values], own)
        for values, _ in references
    ]
    counted = [
        choices * beyond for (_, choices), (beyond, _) in zip(references, claims, strict=True)
    ]
    telling = counted.index(min(counted))
    reference = references[telling][0]  # reference with the strongest evidence
    middle, interval = median(reference), intervals.ratio_interval(reference, own)
    claim = Claim(node, figure, side, middle, median(own) / middle, interval)
    return claim, min(1.0, len(counted) * counted[telling]), claims[-1][1]
