"""Ratios of throughputs with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..cases.conditions import Key
from .columns import COLUMNS, interval_cells
from .results import CaseResult, marks_of

if TYPE_CHECKING:
    import pandas as pd

_CELLS = (
    *("base", "throughput_baseline", "speedup", "speedup_ci_low", "speedup_ci_high"),
    *("reason", "marks"),
)


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
    and its interval, ``reason``, ``marks`` and ``verdict``, which is adjusted for all rows.
    """
    import pandas as pd  # slow to import, and plans make no rows

    found = every[["key", "result"]].rename(columns={"result": "base"})
    sought = cases[["result"]].assign(key=cases["key"].map(base), name=name, at=at, times=times)
    pairs = sought.merge(found, on="key", how="left", validate="many_to_one")
    pairs["base"] = pairs["base"].astype(object).where(pairs["base"].notna(), None)
    columns = (pairs[one] for one in ("result", "base", "name", "at", "times"))
    rows, sides = [], []
    for case, other, other_name, other_at, factor in zip(*columns, strict=True):
        cells = _ratio(case, other, other_name, other_at, refused)
        rows.append({"base": other, **cells, "marks": marks_of(case, other)})
        is_compared = cells["speedup"] is not None and other is not case
        multiplied = [factor * value for value in other.values] if is_compared else ()
        sides.append(Sides(multiplied, case.values) if is_compared else None)
    ratios = pd.DataFrame(rows, cases.index, _CELLS, dtype=object)
    return cases.assign(**ratios, verdict=verdicts(sides))


def _ratio(
    case: CaseResult,
    base: CaseResult | None,
    name: str,
    at: str,
    refused: Callable[[CaseResult], str],
) -> dict[str, Any]:
    """Return the ratio of unrounded medians, its interval, or the reason why there is none."""
    from ..statistics import intervals  # as above

    speedup: float | None = None
    ends: Sequence[float] | None = None
    reason = ""
    if case.throughput is None:
        reason = f"{case.status}: {case.reason}"
    elif base is None:
        reason = f"no {name} run{at}"
    elif base.throughput is None:
        reason = f"{name} is {base.status}: {base.reason}"
    elif why := refused(base):
        reason = why
    else:
        speedup = case.throughput / base.throughput
        is_base = base is case
        ends = (speedup,) * 2 if is_base else intervals.ratio_interval(base.values, case.values)
    return {
        "throughput_baseline": base and base.throughput,
        "speedup": speedup,
        **interval_cells("speedup", ends),
        "reason": reason,
    }


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
