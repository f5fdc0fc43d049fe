"""Files that tables and report are made of, and which of them changed since.

The rule ``runs`` writes ``runs.csv``, a row per run and metric, and ``read_files.csv``, a row per
file that was read. A later call compares that list with the files that exist.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

from core import bounded

from .. import feature_registry as features
from ..files import json_files
from ..files.whole_files import write_whole
from . import expected, searches, sidecars, tidy_csv, verifications
from .record_sets import RecordSet

#: Files in the results: all runs, the files that were read for them, and those that changed since.
RUNS, READ, CHANGED = "runs.csv", "read_files.csv", Path("logs", "changed_files.txt")
_PEAKS = "peak_flops"
_COLUMNS = ("file", "bytes", "modified")


def texts(record_set: RecordSet, source: Path, results: Path) -> dict[Path, str]:
    """Return the files that the rule ``runs`` writes for the records at ``source``.

    Files that hold no run that counts, such as earlier attempts and unreadable files, are rows
    without a figure.
    """
    rows = [
        {**row, tidy_csv.RECORD: run.origin if run.record else ""}
        for run in record_set.runs
        for row in tidy_csv.rows_of(run, [flag.name for flag in run.flags])
    ]
    known = {row[tidy_csv.RECORD] for row in rows}
    files = json_files.below(source)[0] if source.is_dir() else []
    origins = (json_files.origin_of(path, source) for path in files)
    rows += [{tidy_csv.RECORD: origin} for origin in origins if origin not in known]
    return {results / READ: _listing(source), results / RUNS: tidy_csv.text_of(rows)}


def write_changes(results: Path) -> Path | None:
    """Write a list of the files that are new, changed or gone since ``runs.csv`` was made, and
    return it; None if there are none, or no records. Raises OSError.

    The list is newer than ``runs.csv``, so that Snakemake makes that anew.
    """
    if not any((results / name).exists() for name in ("runs", RUNS)):
        return None
    made, listed = results / RUNS, results / READ
    before = bounded.read_text(listed) if made.exists() and listed.exists() else ""
    now = _listing(results / "runs")
    if before == now:
        return None
    lines = sorted({*now.splitlines()} ^ {*before.splitlines()})
    write_whole(results / CHANGED, "\n".join([*lines, ""]))
    if made.exists():
        newer = max(made.stat().st_mtime_ns + 10**6, time.time_ns())
        os.utime(results / CHANGED, ns=(newer, newer))
    return results / CHANGED


def _listing(source: Path) -> str:
    """Return a CSV of all files that tables and report of the records at ``source`` read."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for path in _files(source):
        state = path.stat()
        writer.writerow([path, state.st_size, state.st_mtime_ns])
    return out.getvalue()


def _files(source: Path) -> Iterator[Path]:
    folder = source.parent
    if source.is_file():
        yield source
    for below in (source, verifications.folder_for(source), folder / _PEAKS):
        yield from filter(os.path.isfile, json_files.below(below)[0])
    noted = [folder / name for name in (*sidecars.FILES.values(), expected.FILE)]
    own = [source / name for feature in features.known() for name in feature.record_files]
    others = [*searches.files(folder / searches.FOLDER), source / RUNS, *noted, *own]
    yield from filter(Path.is_file, others)
