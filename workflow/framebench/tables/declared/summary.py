"""Tables of throughput (a row per case), of runs without a figure (a row per reason), and of
searches for the largest batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ...cases.conditions import Key
from ...config.statuses import FOR_PEOPLE
from ...records.run import Run
from ...statistics import intervals
from ..columns import Row
from ..measured import runs_in
from ..results import CaseResult
from ..table import Inputs, declared_table

#: Target width of the interval for ``repeats_needed``, end to end, as a fraction of the median.
WIDTH = 0.01


#: Memory of an attempt of a search: key by column.
_MEMORY = {
    "device_memory_gib": "peak_device_memory_bytes",
    "host_memory_gib": "peak_host_memory_bytes",
    "memory_limit_gib": "memory_limit_bytes",
}


def _cells(result: CaseResult) -> Row:
    return {
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


def failures(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per status and reason, most frequent reasons first within a status."""
    failed: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in inputs.runs:
        if run.status != "ok":
            failed[run.status, run.reason].append(run)
    for (status, reason), runs in sorted(
        sorted(failed.items()), key=lambda pair: (FOR_PEOPLE.index(pair[0][0]), -len(pair[1]))
    ):
        yield {
            "status": status,
            "failed_runs": len(runs),
            "failed_cases": len({run.keys for run in runs}),
            "failed_in": ", ".join(sorted({runs_in(run.case) for run in runs})),
            "reason": reason,
        }


def searched(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per search, with the memory at its largest batch.

    Memory is that of the fullest device, and that of all processes on the host together."""
    for result in inputs.searches:
        attempts, parameters = result.record["attempts"], result.record["parameters"]
        last = next(attempt for attempt in attempts if attempt["batch_per_device"] == result.batch)
        yield {
            **Key(result.case, result.conditions, unit="").row,
            "largest_batch": result.batch if result.status == "ok" else None,
            "status": result.status,
            "reason": result.reason,
            "attempts": len(attempts),
            **{column: last[key] and last[key] / 2**30 for column, key in _MEMORY.items()},
            "multiple_of": parameters["multiple_of"],
            "at_most": parameters["at_most"],
        }


SUMMARY = declared_table("summary", lambda inputs: inputs.cases_with(_cells))
FAILURES = declared_table("failures", failures)
LARGEST = declared_table("largest_batch", searched)
TABLES = (SUMMARY, FAILURES, LARGEST)
