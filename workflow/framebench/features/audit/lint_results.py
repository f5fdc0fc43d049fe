"""Consistency checks of our own results: records against themselves, and tables against records.

Every check is short, takes what was read, and yields findings.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from core import bounded
from core.inputs import NATIVE

from ...cases.conditions import CASE
from ...records.record_sets import RecordSet, load_record
from ...records.run import RecordsError, Run
from ...tables import frames, registry
from ...tables.table import Table
from . import figures
from .findings import Finding, Linted

#: Tolerance by which the steps may sum to more than the timed region: event timers of devices have
#: coarser ticks than the clock of the region.
LONGER = 0.01
#: Smallest fraction of the timed region that the steps must fill. The rest is spent on starting the
#: first step and on noticing the end of the last.
SHORTER = 0.5
#: Seconds for which a process may have to wait for a core.
HELD_UP = 0.1
#: Largest number of missing repeats that are listed.
GAPS_SHOWN = 20
#: Tolerance between figures of a record that were computed from the same floats.
RELATIVE_ERROR = 1e-6
#: Default values of conditions, as text in a CSV.
_UNTOLD = ("", "False", NATIVE)

Row = Mapping[str, str]
# Result of a check: table, row, check, printed, recomputed, note.
Found = tuple[str, str, str, str, str, str]


def check_results(
    record_set: RecordSet,
    recomputed: Mapping[Table, pd.DataFrame],
    source: str,
    made: Path | None,
    stale: bool = False,
) -> Linted:
    """Run all checks on a set of records, and on the tables in the folder ``made``, if any.
    ``recomputed``: the tables of these records; ``stale``: those in ``made`` are of other records.
    """
    findings: list[Found] = [
        ("records", problem.origin, "record", "", "", problem.message)
        for problem in record_set.problems
    ]
    for run in record_set.runs:
        findings += record_agrees(run)
    findings += repeats_complete(record_set.runs)
    count = len(record_set.runs) + len(record_set.problems)
    if made is not None:
        if stale:
            note = "made of other records than these: make them again with the target report"
            findings.append(("tables", str(made), "stale", "", "", note))
        for table, frame in recomputed.items():
            printed = read_table(made / f"{table.name}.csv")
            count += len(printed)
            findings += table_recomputes(table, printed, as_printed(frame))
    named = tuple(Finding(source, *finding) for finding in findings)
    return Linted(source, True, count, "records and rows", named)


def holds_tables(folder: Path) -> bool:
    """Return whether a folder has any table that is made of records."""
    return any((folder / f"{name}.csv").is_file() for name in registry.known())


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table as text; [] if the file does not exist.
    Raises RecordsError for a file that is no CSV."""
    if not path.is_file():
        return []
    try:
        return _rows(bounded.read_text(path))
    except (OSError, ValueError) as error:
        raise RecordsError(f"{path}: cannot be read as CSV: {error}") from error


def as_printed(frame: pd.DataFrame) -> list[dict[str, str]]:
    """Return the rows of a frame as the text of its CSV."""
    return _rows(frames.csv_text(frame))


def _rows(text: str) -> list[dict[str, str]]:
    read = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return [{str(k): str(v) for k, v in row.items()} for row in read.to_dict("records")]


# ---- Checks -----------------------------------------------------------------------------------


def record_agrees(run: Run) -> Iterator[Found]:
    """Check the figures of an ok record against each other.
    There are as many ranks as devices; the timed region is that of the slowest rank. For steps,
    samples are batch x devices x steps, and the region is no shorter than its steps. Reading the
    record already checked throughput = samples / region."""
    if run.record is None or run.status != "ok":
        return
    record = load_record(run.record)
    devices, ranks = run.case.devices, record["ranks"]
    differs = partial(_differs, run)
    if len(ranks) != devices:
        yield differs("devices", len(ranks), devices, "ranks of so many devices")
    windows = [rank["window_seconds"] for rank in ranks if rank.get("window_seconds")]
    window = record["window_seconds"]
    if windows and not math.isclose(window or 0.0, max(windows), rel_tol=RELATIVE_ERROR):
        note = "seconds of the window, which is that of the slowest rank"
        yield differs("throughput", window or 0.0, max(windows), note)
    if run.case.is_step:
        yield from _steps_agree(run, record)


def _differs(run: Run, check: str, printed: float, recomputed: float, note: str) -> Found:
    return "records", run.origin, check, f"{printed:.10g}", f"{recomputed:.10g}", note


def _steps_agree(run: Run, record: Mapping[str, Any]) -> Iterator[Found]:
    differs = partial(_differs, run)
    batch = run.case.batch_per_device
    steps, window = record["settings"]["timed_steps"], record["window_seconds"]
    if record["settings"].get("timed_seconds"):
        steps = max([steps, *(len(rank.get("step_seconds", ())) for rank in record["ranks"])])
    samples = run.case.samples_per_step * steps
    if record["samples"] != samples:
        note = f"samples of {batch} x {run.case.parts_text} x {steps} steps"
        yield differs("throughput", record["samples"], samples, note)
    for rank in record["ranks"]:
        seconds = rank.get("step_seconds", [])
        if seconds and len(seconds) != steps:
            yield differs("steps", len(seconds), steps, f"step times of rank {rank['rank']}")
        if math.fsum(seconds) > (1 + LONGER) * rank.get("window_seconds", window):
            note = f"seconds of the window of rank {rank['rank']}, whose steps take longer together"
            shown = rank.get("window_seconds", window)
            yield differs("batch / latency", shown, math.fsum(seconds), note)
        elif len(seconds) == steps and _is_empty(seconds, rank.get("window_seconds", window)):
            note = f"seconds of the window of rank {rank['rank']}, of which its steps fill so few"
            shown = rank.get("window_seconds", window)
            yield differs("batch / latency", shown, math.fsum(seconds), note)


def _is_empty(steps: Sequence[float], window: float) -> bool:
    """Return whether steps fill less of their timed region than start-up and end can explain.
    A busy machine may take most of a short region between the clock and the first step."""
    total = math.fsum(steps)
    return total < SHORTER * window and window - total > HELD_UP


def repeats_complete(runs: Sequence[Run]) -> Iterator[Found]:
    """Check that no repeat is missing: numbering from 1 without gaps shows removed records."""
    cases: dict[Any, set[int]] = defaultdict(set)
    for run in runs:
        if run.record is not None:
            case = str(PurePosixPath(run.origin).parent), *_asked(run.case)
            cases[case].add(run.repeat)
    for (folder, *_), numbers in cases.items():
        missing = list(_gaps(numbers))
        if missing:
            shown = missing[:GAPS_SHOWN] + [".."] * (len(missing) > GAPS_SHOWN)
            note = f"no record of repeat {', '.join(shown)}"
            yield "records", folder, "repeats", str(max(numbers)), str(len(numbers)), note


def _gaps(numbers: set[int]) -> Iterator[str]:
    """Yield the missing numbers from 1 to the largest; runs of them as ``4 to 9``."""
    before = 0
    for number in sorted(numbers):
        first, last = before + 1, number - 1
        if first <= last:
            yield str(first) if first == last else f"{first} to {last}"
        before = number


# Requested keys of a case: the version may change between its repeats.
_asked = attrgetter(*(key for key in CASE if key != "framework_version"))


def table_recomputes(
    table: Table, printed: Sequence[Row], recomputed: Sequence[Row]
) -> Iterator[Found]:
    """Check that every cell of a table follows from the records, and that it has every case of
    them."""
    there, wanted = _by_case(table, printed), _by_case(table, recomputed)
    for case in [*wanted, *(case for case in there if case not in wanted)]:
        rows, others = there.get(case, []), wanted.get(case, [])
        label = " ".join(value for value in case if value not in _UNTOLD)
        if len(rows) != len(others):
            note = "rows of this case in the table, and by the records"
            yield table.name, label, "rows", str(len(rows)), str(len(others)), note
        for row, other in zip(rows, others, strict=False):
            for column in [*other, *(column for column in row if column not in other)]:
                yield from _cell_agrees(table, label, column, row.get(column), other)


def _by_case(table: Table, rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    cases: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        cases[tuple(row.get(key, "") for key in table.keys)].append(row)
    return cases


def _cell_agrees(
    table: Table, label: str, column: str, printed: str | None, other: Row
) -> Iterator[Found]:
    recomputed = other.get(column)
    if printed == recomputed:
        return
    location = f"{label}: {column}"
    if printed is None or recomputed is None:
        note = "a column that the table lacks" if printed is None else "a column of no such table"
        yield table.name, location, "columns", "", "", note
        return
    check = table.by_name[column].checked_as
    if figures.half_unit(printed) is None or figures.half_unit(recomputed) is None:
        lost = check == "ratio" and not recomputed
        note = other["reason"] if lost else "the records give another"
        yield table.name, location, "baseline" if lost else check, printed, recomputed, note
    elif figures.apart(figures.stands_for(printed), (float(recomputed), float(recomputed))):
        yield table.name, location, check, printed, recomputed, "the records give another"
