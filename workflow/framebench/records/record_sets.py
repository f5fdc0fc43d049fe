"""Record sets: records and tidy CSV files read into runs, the only entry for measurements.

Reading depends on the set of files only, not on their order. A bad file or row becomes a `Problem`
and never stops the others.
"""

from __future__ import annotations

import gc
import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..machine.identities import Identity, completed
from . import searches
from .record_files import read, read_folder
from .run import STATUSES, Problem, RecordsError, Run, cause, order
from .tidy_csv import read_csv, records_named

CSV_NAME = "runs.csv"


@dataclass(frozen=True)
class RecordSet:
    """Runs below `root` in a fixed order, and all files or rows that could not be read.

    `superseded` counts earlier attempts of a repeat that a later attempt replaced.
    """

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]
    root: Path
    superseded: int


def load(path: Path) -> RecordSet:
    """Read a folder of records, a folder with runs.csv, or a tidy CSV of runs.

    A CSV next to the folder ``runs`` whose rows name records there stands for these. Raises
    RecordsError for another path, or a CSV with other columns.
    """
    named = records_named(path) if path.is_file() and path.suffix == ".csv" else []
    if named and (path.parent / "runs").is_dir():
        path = path.parent / "runs"
    if path.is_file() and path.suffix == ".csv":
        root, (runs, problems), superseded = path.parent, read_csv(path), 0
    elif path.is_dir():
        root = path
        gc.disable()  # records have no cycles, and looking for some takes a sixth of the time
        try:
            runs, problems, superseded = read_folder(path, [path / name for name in named])
        finally:
            gc.enable()
        runs = _with_largest(runs, searches.largest(path.parent / searches.FOLDER))
        if (path / CSV_NAME).is_file():
            rows, row_problems = _rows_beside(path / CSV_NAME, bool(runs))
            runs, problems = runs + rows, problems + row_problems
    elif not path.exists():
        raise RecordsError(f"records: {path} does not exist; allowed: a folder or a CSV file")
    else:
        raise RecordsError(f"records: {path} is neither a folder of records nor a CSV file")
    distinct = _labelled(_with_known_version(runs))
    return RecordSet(
        runs=tuple(sorted(distinct, key=order)),
        problems=tuple(sorted(problems, key=lambda problem: (problem.origin, problem.message))),
        root=root,
        superseded=superseded,
    )


def load_results(results: Path) -> RecordSet | None:
    """Return the records of a results folder; None if there are none."""
    folder = results / "runs"
    return load(folder) if folder.is_dir() else None


def _rows_beside(path: Path, beside_others: bool) -> tuple[list[Run], list[Problem]]:
    """Return the rows of a CSV; next to records, an unreadable file is only a problem."""
    try:
        return read_csv(path)
    except RecordsError as error:
        if not beside_others:
            raise
        return [], [Problem(path.name, str(error))]


def of_variant(record_set: RecordSet, name: str) -> tuple[Run, ...]:
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


def load_record(path: Path) -> dict[str, Any]:
    """Return the record at `path`, checked against the schema. Raises RecordsError for any other
    file."""
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise RecordsError(f"{path}: {cause(error)}") from error


def _with_known_version(runs: Iterable[Run]) -> list[Run]:
    """Return runs with missing framework versions filled in.

    Runs that failed early do not know their version. They get that of their framework and source,
    if it is unique; otherwise a failed repeat would be its own case.
    """
    runs = list(runs)
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs:
        if run.case.framework_version:
            versions[run.case.framework, run.case.source].add(run.case.framework_version)
    known = {key: next(iter(some)) for key, some in versions.items() if len(some) == 1}
    completed = []
    for run in runs:
        version = known.get((run.case.framework, run.case.source), "")
        if version and not run.case.framework_version:
            run = replace(run, case=run.case._replace(framework_version=version))
        completed.append(run)
    return completed


def _with_largest(runs: list[Run], largest: frozenset[searches.Key]) -> list[Run]:
    """Return runs that know whether a search found their batch to be the largest that fits."""
    if not largest:
        return runs
    return [replace(run, largest=searches.key_of(run) in largest) for run in runs]


def _labelled(runs: Sequence[Run]) -> list[Run]:
    """Return runs with labels of machine or environment, if their group mixes several.

    A group is all runs that a table may divide by each other: all precisions, compilers, batches
    and device counts. A 1n1g of one machine must not be the baseline of another's 8-device run. The
    environments of two variants differ on purpose, so that only those of one variant count.
    """
    groups: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in runs:
        case = run.case
        key = (case.framework, case.framework_version, case.source, case.model, case.mode)
        groups[(*key, run.conditions)].append(run)
    labelled = []
    fuller = completed(run.machine for run in runs)
    for group in groups.values():
        machines = {fuller[run.machine] for run in group if run.hardware}
        environments = {(run.case.variant, run.environment) for run in group if run.environment}
        counted = Counter(variant for variant, _ in environments)
        for run in group:
            machine, conditions = fuller[run.machine], run.conditions
            if run.hardware and len(machines) > 1:
                conditions = replace(conditions, machine=machine_label(machine))
            if run.environment and counted[run.case.variant] > 1:
                conditions = replace(conditions, environment=_six(run.environment))
            if (machine, conditions) != (run.machine, run.conditions):
                run = replace(run, conditions=conditions, machine=machine)
            labelled.append(run)
    return labelled


def machine_label(machine: Identity) -> str:
    """Return the label of a machine in the conditions of a run: six hex digits."""
    return _six(machine.in_full)


def _six(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:6]
