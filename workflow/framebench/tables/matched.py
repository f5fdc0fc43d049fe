"""Cases of two sides in pairs: the ratio of each, its interval, and the verdict on it.

The sides are two sets of records, or two variants of a suite. If enough repeats were measured in
pairs close in time (:mod:`pairs`), the ratios of the pairs are tested; else each side is a set of
repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..records import pairs
from ..statistics import descriptive, intervals, signed_rank, verdicts
from ..statistics.intervals import Interval
from ..statistics.verdicts import CANNOT_TELL, SLOWER
from .ratios import possible
from .results import CaseResult


@dataclass(frozen=True)
class Matched:
    """A case on both sides; None where a side does not have it."""

    base: CaseResult | None
    candidate: CaseResult | None

    @property
    def either(self) -> CaseResult:
        """The base, or the candidate without one. Raises ValueError without both."""
        for case in (self.base, self.candidate):
            if case is not None:
                return case
        raise ValueError("a case on neither side")

    @property
    def both(self) -> tuple[CaseResult, CaseResult] | None:
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
class Estimate:
    """Estimated ratio of two sides. ``interval`` and ``p_value`` are None with too few repeats.
    ``pairs``: number of pairs compared, 0 if each side was a set. ``order``: see
    :func:`pairs.order`."""

    ratio: float
    interval: Interval | None
    p_value: float | None
    pairs: int
    order: str


@dataclass(frozen=True)
class Judged:
    """A case with the verdict on its ratio, adjusted for all compared cases.

    ``reason``: why there is no verdict, or what it leaves open."""

    matched: Matched
    estimate: Estimate | None
    p_adjusted: float | None
    verdict: str
    reason: str


def judge(
    cases: Sequence[Matched],
    names: Sequence[tuple[str, str]],
    threshold: float = verdicts.THRESHOLD,
) -> list[Judged]:
    """Return the verdict on each case; nothing is rounded.

    Parameters
    ----------
    names
        Names of base and candidate of each case, for reasons.
    threshold
        Fraction above which differences are excluded where none is shown.
    """
    count = sum(matched.both is not None for matched in cases)
    found = [estimate(*matched.both, count) if matched.both else None for matched in cases]
    p_values = {id(one): one.p_value for one in found if one and one.p_value is not None}
    adjusted = dict(zip(p_values, intervals.adjusted([*p_values.values()]), strict=True))
    judged = []
    for matched, sides, one in zip(cases, names, found, strict=True):
        p_adjusted = adjusted.get(id(one))
        verdict, reason = _verdict(matched, one, p_adjusted, sides, threshold)
        judged.append(Judged(matched, one, p_adjusted, verdict, reason))
    return judged


def estimate(base: CaseResult, candidate: CaseResult, cases: int) -> Estimate:
    """Estimate the ratio of a case with figures on both sides, one of ``cases`` compared."""
    order = pairs.order(base.ok, candidate.ok)
    below, above = (base, candidate) if base.better == "higher" else (candidate, base)
    ratios = pairs.ratios(below.ok, above.ok, base.key.metric, base.key.point)
    if len(ratios) >= signed_rank.pairs_needed(cases):
        return Estimate(
            signed_rank.estimate(ratios),
            signed_rank.interval(ratios),
            signed_rank.p_value(ratios),
            len(ratios),
            order,
        )
    interval = intervals.ratio_interval(below.values, above.values)
    return Estimate(
        descriptive.median(above.values) / descriptive.median(below.values),
        interval,
        intervals.rank_test(below.values, above.values) if interval else None,
        0,
        order,
    )


def _verdict(
    matched: Matched,
    estimate: Estimate | None,
    p_adjusted: float | None,
    names: tuple[str, str],
    threshold: float,
) -> tuple[str, str]:
    """Return the verdict, and the reason if it is none or leaves something open."""
    for name, case in zip(names, (matched.base, matched.candidate), strict=True):
        if case is None:
            return CANNOT_TELL, f"not in {name}"
        if case.compared is None:
            return CANNOT_TELL, f"{name} is {case.why_not_compared}"
    if matched.both is None:
        return CANNOT_TELL, matched.why_no_ratio
    if estimate is None or estimate.interval is None or p_adjusted is None:
        return CANNOT_TELL, f"needs {intervals.REPEATS_FOR_RATIO} repeats on both sides"
    low, high = estimate.interval
    verdict = verdicts.verdict(estimate.ratio, estimate.interval, p_adjusted, threshold)
    if verdict == SLOWER and low < 1 - threshold <= high:
        return SLOWER, f"cannot tell whether by more than {threshold:.1%}"
    if verdict == CANNOT_TELL:
        return CANNOT_TELL, possible(estimate.interval)
    return verdict, ""
