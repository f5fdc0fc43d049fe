"""What formats say of cases in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..tables.results import CaseResult
from .format import Results

#: What a unit of time is in seconds.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def marks(case: CaseResult) -> str:
    """The quality flags of a case, with blanks between."""
    return " ".join(sorted(case.marks))


def notes(case: CaseResult) -> str:
    """Marks, remarks, and which repeats are missing, in one line; "" where there is nothing."""
    parts = [f"marks: {marks(case)}" if case.marks else "", case.reason, *case.remarks]
    return "; ".join(filter(None, parts))


def not_measured(results: Results) -> Iterator[str]:
    """The cases without a figure, of a format that has no place for one."""
    for case in results.cases:
        if case.throughput is None:
            yield f"{results.name(case)}: {case.key.metric}: {case.status}: {case.reason}"


def seconds_of_step(case: CaseResult, throughput: float) -> float | None:
    """Of one step of all devices at this throughput; None for other kinds than steps."""
    return case.key.total_batch / throughput if case.case.is_step and throughput else None
