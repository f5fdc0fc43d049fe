"""Record sets: records and tidy CSV files read into runs, the only entry for measurements; searches
for the largest batch next to them; and the files that Snakemake's rules need of a set.

Reading depends on the set of files only, not on their order. A bad file or row becomes a `Problem`
and never stops the others.
"""

from __future__ import annotations

import csv
import gc
import hashlib
import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core import bounded
from core.case import Case

from .. import feature_registry as features
from ..cases import conditions
from ..cases.conditions import Conditions
from ..files import json_files
from ..files.json_files import Problem, cause, split_attempt
from ..files.whole_files import write_whole
from ..machine.identities import Identity
from . import device_peaks, record_files, sidecars, tidy_csv, verifications
from .run import RecordsError, Run, order
from .sidecars import EXPECTED

#: Folder and benchmark of searches for the largest batch.
SEARCHES = "largest_batch"
#: Files in the results: all runs, and the list of files that are read for them. The list has its
#: own folder, because Snakemake would not notice a new file in a folder that it has already read.
RUNS, READ = "runs.csv", Path("logs", "files", "read_files.csv")


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    ``case``, ``conditions``: case and conditions of the runs that it tried. ``batch``: the largest
    that fits, or the batch at which a failed search ended; ``record``: the whole record."""

    case: Case
    conditions: Conditions
    status: str
    reason: str
    batch: int
    record: Mapping[str, Any]


@dataclass(frozen=True)
class RecordSet:
    """Runs below `root` in a fixed order, all files or rows that could not be read, and the
    searches for the largest batch next to them."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]
    root: Path
    searches: tuple[SearchResult, ...] = ()


def load(path: Path) -> RecordSet:
    """Read a folder of records, a folder with runs.csv, or a tidy CSV of runs.

    If the rows of a CSV name records in the folder ``runs`` next to it, these are read. Raises
    RecordsError for another path, or a CSV with other columns.
    """
    named = tidy_csv.records_named(path) if path.is_file() and path.suffix == ".csv" else []
    if named and (path.parent / "runs").is_dir():
        path = path.parent / "runs"
    if not path.exists():
        raise RecordsError(f"records: {path} does not exist; allowed: a folder or a CSV file")
    is_csv = path.is_file() and path.suffix == ".csv"
    if not is_csv and not path.is_dir():
        raise RecordsError(f"records: {path} is neither a folder of records nor a CSV file")
    runs: list[Run] = []
    problems: list[Problem] = []
    searched: list[SearchResult] = []
    if not is_csv:
        # records have no reference cycles; searching for cycles takes a sixth of the time
        gc.disable()
        try:
            runs, problems = record_files.read_folder(path, [path / name for name in named])
        finally:
            gc.enable()
        searched, of_searches = load_searches(path.parent / SEARCHES)
        problems += of_searches
    table = path if is_csv else path / RUNS
    if table.is_file():
        rows, of_rows = tidy_csv.read_csv(table)
        runs, problems = runs + rows, problems + of_rows
    return RecordSet(
        runs=tuple(sorted(_labelled(_with_known_version(runs)), key=order)),
        problems=tuple(sorted(problems)),
        root=path.parent if is_csv else path,
        searches=tuple(searched),
    )


def load_results(results: Path) -> RecordSet | None:
    """Return the records of a results folder; None if there are none."""
    folder = results / "runs"
    return load(folder) if folder.is_dir() else None


def runs_of_variant(record_set: RecordSet, name: str) -> tuple[Run, ...]:
    """Return the runs of one variant of an A/B test, without the variant in their conditions.

    They can then be compared with another variant's. Raises RecordsError for an unknown variant.
    """
    runs = tuple(
        replace(
            run,
            case=run.case._replace(variant=""),
            conditions=run.conditions.without_variant,
        )
        for run in record_set.runs
        if run.case.variant == name
    )
    if not runs:
        names = {run.case.variant for run in record_set.runs} - {""}
        raise RecordsError(
            f"{record_set.root}: no run is of variant {name!r}; there are: "
            f"{', '.join(sorted(names)) or 'none'}"
        )
    return runs


def _with_known_version(runs: Sequence[Run]) -> list[Run]:
    """Return runs with missing framework versions filled in.

    Runs that failed early do not know their version. They get the version of other runs of their
    framework and source, if it is unique; otherwise a failed repeat would be a case of its own.
    """
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs:
        versions[run.case.framework, run.case.source] |= {run.case.framework_version} - {""}
    found = []
    for run in runs:
        known = versions[run.case.framework, run.case.source]
        if len(known) == 1 and not run.case.framework_version:
            run = replace(run, case=run.case._replace(framework_version=next(iter(known))))
        found.append(run)
    return found


def _labelled(runs: Sequence[Run]) -> list[Run]:
    """Return runs with labels of machine or environment, if their group mixes several.

    A group is all runs that a table may divide by each other: all precisions, compilers, batches
    and device counts. A 1n1g of one machine must not be the baseline of another's 8-device run. The
    environments of two variants differ on purpose, so only environments within one variant are
    compared.
    """
    groups: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in runs:
        case = run.case
        key = (case.framework, case.framework_version, case.source, case.model, case.mode)
        groups[(*key, run.conditions)].append(run)
    labelled = []
    for group in groups.values():
        machines = {run.machine for run in group if run.hardware}
        environments = {(run.case.variant, run.environment) for run in group if run.environment}
        counted = Counter(variant for variant, _ in environments)
        for run in group:
            conditions = run.conditions
            if run.hardware and len(machines) > 1:
                conditions = replace(conditions, machine=machine_label(run.machine))
            if run.environment and counted[run.case.variant] > 1:
                conditions = replace(conditions, environment=_six(run.environment))
            is_labelled = conditions != run.conditions
            labelled.append(replace(run, conditions=conditions) if is_labelled else run)
    return labelled


def machine_label(machine: Identity) -> str:
    """Return the label of a machine in the conditions of a run: six hex digits."""
    return _six(machine.in_full)


def _six(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:6]


# ---- searches for the largest batch --------------------------------------------------------------


def read_search(path: Path) -> SearchResult:
    """Return the search result in a file. Raises OSError, or ValueError with the fault."""
    record = record_files.read(path, SEARCHES)
    status, is_ok = record["status"], record["status"] == "ok"
    ended = [
        attempt["batch_per_device"]
        for attempt in record.get("attempts", ())
        if (attempt["status"] == "ok") == is_ok
    ]
    if not ended:
        raise ValueError(f"is {status}, but no tried batch has this status")
    batch = record["metrics"][SEARCHES]["value"] if is_ok else ended[-1]
    tried = conditions.case_and_conditions(record, record["parameters"]["mode"])
    return SearchResult(*tried, status, record["reason"], int(batch), record)


def load_searches(folder: Path) -> tuple[list[SearchResult], list[Problem]]:
    """Return the latest result of each search below ``folder``, and unreadable files."""
    results: dict[Path, SearchResult] = {}
    problems = []
    for path in sorted(search_files(folder), key=lambda path: split_attempt(path.stem)[1]):
        try:
            results[path.with_name(split_attempt(path.stem)[0])] = read_search(path)
        except record_files.UNREADABLE as error:
            origin = f"{SEARCHES}/{json_files.origin_of(path, folder)}"
            problems.append(Problem(origin, cause(error)))
    return [*results.values()], problems


def search_files(folder: Path) -> list[Path]:
    """Return the result files of searches, without the runs of a search one folder deeper."""
    return sorted(path for path in folder.glob("*/*/*.json") if not path.name.startswith("."))


# ---- files for Snakemake -------------------------------------------------------------------------

# The list of read files is an input of the rule ``runs``, which writes ``runs.csv``, a row per run
# and metric, and brings the list up to date. A later call writes the list anew if a file is new,
# changed or gone since, so that Snakemake makes ``runs.csv`` again.


def texts_of_runs(record_set: RecordSet, source: Path, results: Path) -> dict[Path, str]:
    """Return the files that the rule ``runs`` writes for the records at ``source``.

    Each file without a run that counts, such as an earlier attempt or an unreadable file, has a row
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


def write_list_of_files(results: Path) -> Path | None:
    """Write the list of files anew if it differs from the one that exists, and return it; None
    without records. Raises OSError."""
    if not any((results / name).exists() for name in ("runs", RUNS)):
        return None
    listed, now = results / READ, _listing(results / "runs")
    if not listed.is_file() or bounded.read_text(listed) != now:
        write_whole(listed, now)
    return listed


def _listing(source: Path) -> str:
    """Return a CSV of all files that tables and report of the records at ``source`` read."""
    folder = source.parent
    folders = (source, verifications.folder_for(source), folder / device_peaks.KIND)
    paths = [source, *(path for below in folders for path in json_files.below(below)[0])]
    paths += [*search_files(folder / SEARCHES), source / RUNS]
    paths += [folder / name for name in (*sidecars.FILES.values(), EXPECTED)]
    paths += [source / name for feature in features.known() for name in feature.record_files]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("file", "bytes", "modified"))
    for path in filter(Path.is_file, paths):
        state = path.stat()
        writer.writerow([path, state.st_size, state.st_mtime_ns])
    return out.getvalue()
