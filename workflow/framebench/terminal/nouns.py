"""Nouns for the kinds of jobs."""

from __future__ import annotations

#: Singular and plural of each kind of job, in the order of the status line.
NOUNS = {
    "run": ("run", "runs"),
    "search": ("largest batch", "largest batches"),
    "environment": ("environment", "environments"),
    "peak_flops": ("peak benchmark", "peak benchmarks"),
    "reference": ("reference", "references"),
    "verification": ("verification", "verifications"),
    "tables": ("report", "reports"),
}


def count_of(number: int, kind: str) -> str:
    """Return a count with its noun, such as ``84 runs``."""
    return f"{number} {NOUNS[kind][number != 1]}"
