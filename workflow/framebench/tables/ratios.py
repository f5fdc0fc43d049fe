"""Ratios of throughputs with verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .columns import COLUMNS, Row, interval_cells
from .results import CaseResult


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


def ratio(result: CaseResult, base: CaseResult | None, name: str, at: str = "") -> dict[str, Any]:
    """Return the cells of ``speedup``, its interval and ``reason``.

    The speed-up is median over median, unrounded. ``name``: name of the baseline. ``at``: setting
    at which it was expected, for the reason."""
    if result.throughput is None:
        return no_ratio(f"{result.status}: {result.reason}")
    if base is None:
        return no_ratio(f"no {name} run{at}")
    if base.throughput is None:
        return no_ratio(f"{name} is {base.status}: {base.reason}")
    value = result.throughput / base.throughput
    if base is result:
        return {"speedup": value, **interval_cells("speedup", (value, value)), "reason": ""}
    from ..statistics import intervals  # slow to import, and plans make no rows

    ends = intervals.ratio_interval(base.values, result.values)
    return {"speedup": value, **interval_cells("speedup", ends), "reason": ""}


def no_ratio(reason: str) -> dict[str, Any]:
    """Return the cells of :func:`ratio` without a ratio."""
    return {"speedup": None, **interval_cells("speedup", None), "reason": reason}


def sides(result: CaseResult, base: CaseResult | None, times: int = 1) -> Sides | None:
    """Return the repeats that a verdict compares; None for the baseline or without one.

    ``times``: factor of the baseline's figures."""
    if base is None or base is result:
        return None
    return Sides([times * value for value in base.values], result.values)


def with_verdicts(rows: Iterable[tuple[Row, Sides | None]]) -> Iterator[dict[str, Any]]:
    """Yield each row with its ``verdict``, adjusted for all rows.

    The verdict is "" without a comparison or with too few repeats for an interval. The p-value of a
    case chosen from several is multiplied by their number (Bonferroni)."""
    from ..statistics import descriptive, intervals, verdicts  # slow to import

    listed = list(rows)
    tested = {
        index: (interval, min(1.0, both.choices * intervals.rank_test(both.base, both.values)))
        for index, (_, both) in enumerate(listed)
        if both and (interval := intervals.ratio_interval(both.base, both.values))
    }
    adjusted = dict(zip(tested, intervals.adjusted([p for _, p in tested.values()]), strict=True))
    for index, (row, both) in enumerate(listed):
        text = ""
        if both and index in tested:
            found = descriptive.median(both.values) / descriptive.median(both.base)
            text = verdicts.verdict(found, tested[index][0], adjusted[index])
        yield {**row, "verdict": text}


def possible(interval: Sequence[float]) -> str:
    """Return the range that an interval leaves open, for undecided verdicts."""
    low, high = interval
    return (
        f"anything from {low - 1:+.1%} to {high - 1:+.1%} is possible: more repeats, or less noise"
    )
