"""One case's throughput over another's."""

from __future__ import annotations

from typing import Any

from ..statistics import intervals
from .cases import Case

COLUMNS = ("speedup", "speedup_ci_low", "speedup_ci_high", "reason")


def ratio(case: Case, base: Case | None, name: str, at: str = "") -> list[Any]:
    """COLUMNS: median over median, neither rounded, its interval, and why one of them is missing.
    ``name`` is what a baseline is called, ``at`` where it would have been."""
    if case.throughput is None:
        return [None, None, None, f"{case.status}: {case.reason}"]
    if base is None:
        return [None, None, None, f"no {name} run{at}"]
    if base.throughput is None:
        return [None, None, None, f"{name} is {base.status}: {base.reason}"]
    found = case.throughput / base.throughput
    if base is case:
        return [found, found, found, ""]
    low, high = intervals.ratio_interval(base.values, case.values) or (None, None)
    return [found, low, high, ""]
