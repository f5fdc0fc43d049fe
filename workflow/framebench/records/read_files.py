"""Files from which tables and report are made, and their list.

The list ``logs/files/read_files.csv`` is an input of the rule ``runs``, which writes ``runs.csv``,
a row per run and metric, and brings the list up to date. A later call writes the list anew if a
file is new, changed or gone since, so that Snakemake makes ``runs.csv`` again.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

from core import bounded

from .. import feature_registry as features
from ..files import json_files
from ..files.whole_files import write_whole
from . import expected, searches, sidecars, tidy_csv, verifications
from .record_sets import RecordSet

#: Files in the results: all runs, and the list of files that are read for them. The list has its
#: own folder, because Snakemake would not notice a new file in a folder that it has already read.
RUNS, READ = "runs.csv", Path("logs", "files", "read_files.csv")
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


def write_list(results: Path) -> Path | None:
    """Write the list of files anew if it differs from the one that exists, and return it; None
    without records. Raises OSError."""
    if not any((results / name).exists() for name in ("runs", RUNS)):
        return None
    listed, now = results / READ, _listing(results / "runs")
    if not listed.is_file() or bounded.read_text(listed) != now:
        listed.parent.mkdir(parents=True, exist_ok=True)
        write_whole(listed, now)
    return listed


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
