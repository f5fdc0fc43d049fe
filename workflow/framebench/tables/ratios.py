"""One case's throughput over another's."""

from __future__ import annotations

from typing import Any

from .results import CaseResult

COLUMNS = ("speedup", "speedup_ci_low", "speedup_ci_high", "reason")


def ratio(result: CaseResult, base: CaseResult | None, name: str, at: str = "") -> list[Any]:
    """COLUMNS: median over median, neither rounded, its interval, and why one of them is missing.
    ``name`` is what a baseline is called, ``at`` where it would have been."""
    if result.throughput is None:
        return [None, None, None, f"{result.status}: {result.reason}"]
    if base is None:
        return [None, None, None, f"no {name} run{at}"]
    if base.throughput is None:
        return [None, None, None, f"{name} is {base.status}: {base.reason}"]
    value = result.throughput / base.throughput
    if base is result:
        return [value, value, value, ""]
    from ..statistics import intervals  # scipy takes its time, and a plan makes no rows

    low, high = intervals.ratio_interval(base.values, result.values) or (None, None)
    return [value, low, high, ""]
