"""One case's throughput over another's, and what the ratios of a table are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .columns import COLUMNS
from .results import CaseResult

#: Throughputs of the repeats of a baseline, and of what is compared with it.
Sides = tuple[Sequence[float], Sequence[float]]

VERDICT_RULE = (
    "The interval is that of one ratio; of many, some exclude 1 by chance. The verdict is adjusted "
    "for all ratios of the table, so that 5 % of all differences it calls are false on average "
    "(rank sum tests; Benjamini and Hochberg). Of scaling it is that of the efficiency: against as "
    "many single devices. No difference is shown where the interval excludes "
    "every one above 5 %. Both hold for this machine and this session: what differs on another day "
    "is not in them."
)


VERDICT = replace(COLUMNS["verdict"], about=VERDICT_RULE)


def ratio(result: CaseResult, base: CaseResult | None, name: str, at: str = "") -> list[Any]:
    """Speed-up, its interval, and the reason: median over median, neither rounded, and why one of
    them is missing. ``name`` is what a baseline is called, ``at`` where it would have been."""
    if result.throughput is None:
        return [None, None, None, f"{result.status}: {result.reason}"]
    if base is None:
        return [None, None, None, f"no {name} run{at}"]
    if base.throughput is None:
        return [None, None, None, f"{name} is {base.status}: {base.reason}"]
    value = result.throughput / base.throughput
    if base is result:
        return [value, value, value, ""]
    from ..statistics import intervals  # numpy takes its time, and a plan makes no rows

    low, high = intervals.ratio_interval(base.values, result.values) or (None, None)
    return [value, low, high, ""]


def sides(result: CaseResult, base: CaseResult | None, times: int = 1) -> Sides | None:
    """What a verdict compares: the repeats of ``times`` its ``base``, and of ``result``. None for a
    baseline itself, and without one."""
    if base is None or base is result:
        return None
    return [times * value for value in base.values], result.values


def with_verdicts(rows: Iterable[tuple[list[Any], Sides | None]]) -> Iterator[list[Any]]:
    """Each row with its verdict behind it, adjusted for all of them; "" where nothing is compared,
    and where the repeats are too few for an interval."""
    from ..statistics import descriptive, intervals, verdicts  # as above

    listed = list(rows)
    tested = {
        index: (interval, intervals.rank_test(*both))
        for index, (_, both) in enumerate(listed)
        if both and (interval := intervals.ratio_interval(*both))
    }
    adjusted = dict(zip(tested, intervals.adjusted([p for _, p in tested.values()]), strict=True))
    for index, (row, both) in enumerate(listed):
        text = ""
        if both and index in tested:
            base, values = map(descriptive.median, both)
            text = verdicts.verdict(values / base, tested[index][0], adjusted[index])
        yield [*row, text]
