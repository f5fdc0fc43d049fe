"""Table of throughput: a row per case with status, median and spread."""

from __future__ import annotations

from ...statistics import intervals, shape
from ..columns import Row, interval_cells
from ..results import CaseResult
from ..table import declared_table

#: Target width of the interval for ``repeats_needed``, end to end, as a fraction of the median.
WIDTH = 0.01


def _cells(result: CaseResult) -> Row:
    return {
        "throughput_min": min(result.values, default=None),
        "throughput_max": max(result.values, default=None),
        **interval_cells("throughput", result.interval),
        "throughput_spread": shape.spread(result.values),
        "repeats_needed": intervals.repeats_for_width(result.values, WIDTH),
        "tokens_per_second": tokens_per_second(result),
    }


def tokens_per_second(result: CaseResult) -> float | None:
    """Return tokens per second, padding included; None unless samples are sequences."""
    work = (result.ok or result.runs)[0].sample_work
    length: int | None = work.tokens if work else result.case.sequence_length
    if result.throughput is None or length is None:
        return None
    return result.throughput * length


SUMMARY = declared_table("summary", lambda inputs: inputs.cases_with(_cells))
TABLES = (SUMMARY,)
