"""Ratios of the figures of two cases: interval, test and verdict.

Verdicts are adjusted for all ratios of a table. The sides are a case and its baseline
(:mod:`declared.speedups`), two sets of records, or two variants of a suite. For the latter two, if
enough repeats were measured in pairs (:func:`paired_ratios`), the ratios of the pairs are
tested; else each side is a set of repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..records.run import measuring_order, paired_ratios
from ..statistics import descriptive, intervals, verdicts
from ..statistics.intervals import Interval
from ..statistics.verdicts import CANNOT_TELL, SLOWER
from .results import CaseResult


class Sides(NamedTuple):
    """Figures of the repeats of a baseline and of a case.

    ``choices``: number of cases that the case was chosen from by these figures; its p-value is
    multiplied by it (Bonferroni)."""

    base: Sequence[float]
    values: Sequence[float]
    choices: int = 1


@dataclass(frozen=True)
class Estimate:
    """Estimated ratio of two sides. ``interval`` and ``p_value`` are None with too few repeats.
    ``pairs``: number of pairs compared, 0 if each side was a set. ``order``: see
    :func:`measuring_order`."""

    ratio: float
    interval: Interval | None
    p_value: float | None
    pairs: int = 0
    order: str = ""


def set_estimate(sides: Sides, order: str = "") -> Estimate:
    """Return the ratio of the medians of two sets of repeats. The base's median is not 0."""
    base, values, choices = sides
    interval = intervals.ratio_interval(base, values)
    p_value = min(1.0, choices * intervals.rank_test(base, values)) if interval else None
    ratio = descriptive.median(values) / descriptive.median(base)
    return Estimate(ratio, interval, p_value, 0, order)


def _adjusted(estimates: Sequence[Estimate | None]) -> list[float | None]:
    """Return the p-value of each estimate, adjusted for all of them; None without a p-value."""
    p_values = {
        at: one.p_value for at, one in enumerate(estimates) if one and one.p_value is not None
    }
    adjusted = dict(zip(p_values, intervals.adjusted([*p_values.values()]), strict=True))
    return [adjusted.get(at) for at in range(len(estimates))]


def set_verdicts(sides: Sequence[Sides | None]) -> list[str]:
    """Return the verdict on each comparison, adjusted for all of them.

    It is "" without a comparison or with too few repeats for an interval."""
    estimates = [both and set_estimate(both) for both in sides]
    return [
        verdicts.verdict(one.ratio, one.interval, p)
        if one and one.interval and p is not None
        else ""
        for one, p in zip(estimates, _adjusted(estimates), strict=True)
    ]


def possible(interval: Sequence[float]) -> str:
    """Return the range that an interval leaves open, for undecided verdicts."""
    low, high = interval
    return (
        f"anything from {low - 1:+.1%} to {high - 1:+.1%} is possible: more repeats, or less noise"
    )


# ---- two sets of records, or two variants -------------------------------------------------------


@dataclass(frozen=True)
class Matched:
    """A case on both sides; None where a side does not have it."""

    base: CaseResult | None
    candidate: CaseResult | None

    @property
    def either(self) -> CaseResult:
        """The base's result, or the candidate's if there is no base."""
        case = self.base or self.candidate
        assert case is not None, "a case has at least one side"
        return case

    @property
    def comparable_sides(self) -> tuple[CaseResult, CaseResult] | None:
        """Return both results if both have positive figures to compare, else None."""
        if self.base is None or self.candidate is None or self.base.unit != self.candidate.unit:
            return None
        positive = all(
            result.compared is not None and min(result.values) > 0
            for result in (self.base, self.candidate)
        )
        return (self.base, self.candidate) if positive else None

    @property
    def why_no_ratio(self) -> str:
        """Why figures on both sides have no ratio."""
        units = [side.unit for side in (self.base, self.candidate) if side]
        if len({*units}) > 1:
            return f"the units differ: {' and '.join(units)}"
        return "a ratio needs figures above 0"


@dataclass(frozen=True)
class Judged:
    """A case with the verdict on its ratio, adjusted for all compared cases.

    ``reason``: why there is no verdict, or what it leaves open."""

    matched: Matched
    estimate: Estimate | None
    p_adjusted: float | None
    verdict: str
    reason: str


def judge(cases: Sequence[Matched], names: Sequence[tuple[str, str]]) -> list[Judged]:
    """Return the verdict on each case; nothing is rounded.

    ``names``: names of base and candidate of each case, for reasons."""
    count = sum(matched.comparable_sides is not None for matched in cases)
    estimates = [
        _estimate(*matched.comparable_sides, count) if matched.comparable_sides else None
        for matched in cases
    ]
    return [
        Judged(matched, one, p_adjusted, *_verdict(matched, one, p_adjusted, sides))
        for matched, sides, one, p_adjusted in zip(
            cases, names, estimates, _adjusted(estimates), strict=True
        )
    ]


def _estimate(base: CaseResult, candidate: CaseResult, cases: int) -> Estimate:
    """Estimate the ratio of a case with figures on both sides, one of ``cases`` compared."""
    order = measuring_order(base.ok, candidate.ok)
    below, above = (base, candidate) if base.better == "higher" else (candidate, base)
    ratios = paired_ratios(below.ok, above.ok, base.key.metric, base.key.point)
    if len(ratios) < intervals.pairs_needed(cases):
        return set_estimate(Sides(below.values, above.values), order)
    return Estimate(
        intervals.signed_rank_estimate(ratios),
        intervals.signed_rank_interval(ratios),
        intervals.signed_rank_test(ratios),
        len(ratios),
        order,
    )


def _verdict(
    matched: Matched, estimate: Estimate | None, p_adjusted: float | None, names: tuple[str, str]
) -> tuple[str, str]:
    """Return the verdict, and why it cannot tell or what it leaves open."""
    for name, case in zip(names, (matched.base, matched.candidate), strict=True):
        if case is None:
            return CANNOT_TELL, f"not in {name}"
        if case.compared is None:
            return CANNOT_TELL, f"{name} is {case.why_not_compared}"
    if estimate is None:
        return CANNOT_TELL, matched.why_no_ratio
    if estimate.interval is None or p_adjusted is None:
        return CANNOT_TELL, f"needs {intervals.REPEATS_FOR_RATIO} repeats on both sides"
    low, high = estimate.interval
    verdict = verdicts.verdict(estimate.ratio, estimate.interval, p_adjusted)
    if verdict == SLOWER and low < 1 - verdicts.THRESHOLD <= high:
        return SLOWER, f"cannot tell whether by more than {verdicts.THRESHOLD:.1%}"
    return verdict, possible(estimate.interval) if verdict == CANNOT_TELL else ""
