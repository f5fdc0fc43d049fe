"""Short texts about a case (flags, remarks, missing figures) that several formats write."""

from __future__ import annotations

from collections.abc import Iterator

from ...tables.results import CaseResult
from .format import Results


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
