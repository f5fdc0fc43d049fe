"""Table of throughput: a row per case with status, median and spread."""

from __future__ import annotations

from operator import attrgetter

from ..columns import (
    COUNT,
    NUMBER,
    PERCENT,
    RATE,
    RESULT_COLUMNS,
    TENTHS,
    Column,
    Row,
    interval,
    shared,
    why_no_interval,
    why_no_spread,
)
from ..results import CaseResult, maximum, minimum, spread
from ..table import Drawing, Table

#: Target width of the interval for ``repeats_needed``, end to end, as a fraction of the median.
WIDTH = 0.01


def _repeats_needed(result: CaseResult) -> int | None:
    from ...statistics import intervals  # slow to import, and plans make no rows

    return intervals.repeats_for_width(result.values, WIDTH)


def tokens_per_second(result: CaseResult) -> float | None:
    """Return tokens per second, padding included; None unless samples are sequences."""
    work = (result.ok or result.runs)[0].sample_work
    length: int | None = work.tokens if work else result.case.sequence_length
    if result.throughput is None or length is None:
        return None
    return result.throughput * length


def _why_no_tokens(row: Row) -> str:
    present = row["throughput_median"] is None or row["sequence_length"] is not None
    return "" if present else "its samples are no sequences"


TOKENS = Column(
    "tokens_per_second",
    NUMBER,
    "the median times the length of its sequences",
    "tokens/s",
    tokens_per_second,
    title="tokens/s",
    form=TENTHS,
    optional=True,
    why=_why_no_tokens,
)

SUMMARY = Table(
    name="summary",
    title="Summary",
    explanation="Global samples per second: the median over repeats, its extremes, and a "
    "distribution-free 95 % interval of the median. Batches are those of one device; 2n8g is 2 "
    "nodes with 8 devices each. Memory is the most that any rank of any repeat took; tokens count "
    "every place of a sequence.",
    columns=(
        *RESULT_COLUMNS,
        *shared("status", "reason", "repeats", "throughput_median"),
        Column(
            "throughput_min",
            NUMBER,
            "slowest repeat",
            RATE,
            minimum,
            title="min \N{EN DASH} max",
            to="throughput_max",
        ),
        Column(
            "throughput_max",
            NUMBER,
            "fastest repeat",
            RATE,
            maximum,
        ),
        *interval(
            "throughput",
            "the median",
            RATE,
            attrgetter("interval"),
            why=why_no_interval(),
        ),
        *shared("unit", "flags"),
        Column(
            "throughput_spread",
            NUMBER,
            "(maximum - minimum) / median",
            value=spread,
            title="spread %",
            form=PERCENT,
            why=why_no_spread,
        ),
        Column(
            "repeats_needed",
            COUNT,
            "repeats that an interval 1 % wide would take",
            value=_repeats_needed,
            title="repeats for 1 %",
            why=why_no_spread,
        ),
        TOKENS,
        *shared("peak_device_memory_bytes", "peak_host_memory_bytes", "remarks"),
    ),
    rows=attrgetter("frame"),
    group="Results",
    drawings=(Drawing("throughput"),),
    heading="Throughput",
    always=True,
    sectioned=True,
    answers=("throughput_median", "throughput_ci_low"),
    order="throughput_median",
)
TABLES = (SUMMARY,)
