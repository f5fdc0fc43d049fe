"""Short texts about a case (flags, remarks, missing figures) that several formats write."""

from __future__ import annotations

from collections.abc import Iterator

from ...tables.results import CaseResult
from .format import Results

#: Seconds per unit of time.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def flags(case: CaseResult) -> str:
    """Return the names of a case's flags, sorted and separated by spaces."""
    return " ".join(sorted(case.flags))


def notes(case: CaseResult) -> str:
    """Return flags, reason and remarks of a case in one line; "" without any of them."""
    parts = [f"flags: {flags(case)}" if case.flags else "", case.reason, *case.remarks]
    return "; ".join(filter(None, parts))


def not_measured(results: Results) -> Iterator[str]:
    """Yield a line for each case without a figure to compare, for formats that cannot hold one."""
    for case in results.cases:
        if case.compared is None:
            yield f"{results.name(case)}: {case.key.metric}: {case.why_not_compared}"


def seconds_of_step(case: CaseResult, throughput: float) -> float | None:
    """Return the seconds of one step at a throughput; None for other benchmarks than steps.

    ``throughput``: samples per second of all devices."""
    return case.case.samples_per_step / throughput if case.case.is_step and throughput else None
