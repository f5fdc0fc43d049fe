"""Ratios of throughputs with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..cases.conditions import Key
from .columns import COLUMNS
from .results import CaseResult, flags_of

if TYPE_CHECKING:
    import pandas as pd


class Sides(NamedTuple):
    """Figures of the repeats of a baseline and of a case.

    ``choices``: number of cases that the case was chosen from by these figures."""

    base: Sequence[float]
    values: Sequence[float]
    choices: int = 1


VERDICT_RULE = (
    "The interval is that of one ratio; of many, some exclude 1 by chance. The verdict is adjusted "
    "for all ratios of the table, so that 5 % of all differences it calls are false on average "
    "(rank sum tests; Benjamini and Hochberg). Of scaling it is that of the efficiency: against as "
    "many single devices. No difference is shown where the interval excludes "
    "every one above 5 %. Both hold for this machine and this session: what differs on another day "
    "is not in them."
)


VERDICT = replace(COLUMNS["verdict"], about=VERDICT_RULE)


def ratio_table(
    cases: pd.DataFrame,
    every: pd.DataFrame,
    base: Callable[[Key], Key],
    name: str | Sequence[str],
    at: str | Sequence[str] = "",
    times: int | Sequence[int] = 1,
    refused: Callable[[CaseResult], str] = lambda base: "",
) -> pd.DataFrame:
    """Return ``cases`` with the ratio of each throughput to that of its baseline.

    Parameters
    ----------
    cases, every : the compared cases, and those with their baselines; see :mod:`case_frame`.
    base : returns the key of the baseline of a case.
    name, at : name of the baseline, and setting at which it is expected, for reasons.
    times : factor of the baseline's figures for verdicts.
    refused : returns why a case must not be a baseline; "" if it may.

    Returns
    -------
    ``cases`` with the columns ``base`` (CaseResult or None), ``throughput_baseline``, ``speedup``
    and its interval, ``reason``, ``flags`` and ``verdict``, which is adjusted for all rows.
    """
    import pandas as pd  # slow to import, and plans make no rows

    from ..statistics import intervals  # as above

    names = {"result": "base", "throughput_median": "throughput_baseline"}
    found = every[["key", *names]].rename(columns=names)
    sought = cases["key"].map(base).to_frame().assign(name=name, at=at, times=times)
    pairs = sought.merge(found, on="key", how="left", validate="many_to_one")
    pairs = pairs.set_index(cases.index)
    pairs["base"] = pairs["base"].astype(object).where(pairs["base"].notna(), None)
    sides = [*zip(cases["result"], pairs["base"], strict=True)]
    pairs["reason"] = [
        _why_no_ratio(*both, expected, setting, refused)
        for both, expected, setting in zip(sides, pairs["name"], pairs["at"], strict=True)
    ]
    ratio = cases["throughput_median"] / pairs["throughput_baseline"]
    pairs["speedup"] = ratio.where(pairs["reason"] == "")
    figures: list[Sides | None] = [None] * len(sides)
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(sides)
    columns = zip(sides, pairs["times"], pairs["speedup"], pairs["reason"], strict=True)
    for row, ((case, other), factor, speedup, reason) in enumerate(columns):
        if other is case:
            ends[row] = speedup, speedup
        elif other and not reason:
            figures[row] = Sides([factor * value for value in other.values], case.values)
            ends[row] = intervals.ratio_interval(other.values, case.values) or (None, None)
    return cases.assign(
        **pairs[["base", "throughput_baseline", "speedup", "reason"]],
        **pd.DataFrame(ends, cases.index, ["speedup_ci_low", "speedup_ci_high"], dtype="float64"),
        flags=[flags_of(*both) for both in sides],
        verdict=verdicts(figures),
    )


def _why_no_ratio(
    case: CaseResult,
    base: CaseResult | None,
    name: str,
    at: str,
    refused: Callable[[CaseResult], str],
) -> str:
    """Return why a case has no ratio to its baseline; "" if it has one."""
    if case.compared is None:
        return case.why_not_compared
    if base is None:
        return f"no {name} run{at}"
    if base.compared is None:
        return f"{name} is {base.why_not_compared}"
    return refused(base)


def verdicts(sides: Sequence[Sides | None]) -> list[str]:
    """Return the verdict on each comparison, adjusted for all of them.

    It is "" without a comparison or with too few repeats for an interval. The p-value of a case
    chosen from several is multiplied by their number (Bonferroni)."""
    from ..statistics import descriptive, intervals  # as above
    from ..statistics.verdicts import verdict

    tested = {
        index: (interval, min(1.0, both.choices * intervals.rank_test(both.base, both.values)))
        for index, both in enumerate(sides)
        if both and (interval := intervals.ratio_interval(both.base, both.values))
    }
    adjusted = dict(zip(tested, intervals.adjusted([p for _, p in tested.values()]), strict=True))

    def text(index: int, both: Sides | None) -> str:
        if both is None or index not in tested:
            return ""
        ratio = descriptive.median(both.values) / descriptive.median(both.base)
        return verdict(ratio, tested[index][0], adjusted[index])

    return [text(index, both) for index, both in enumerate(sides)]


def possible(interval: Sequence[float]) -> str:
    """Return the range that an interval leaves open, for undecided verdicts."""
    low, high = interval
    return (
        f"anything from {low - 1:+.1%} to {high - 1:+.1%} is possible: more repeats, or less noise"
    )
