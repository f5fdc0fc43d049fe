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

from ..machine.identities import Identity
from . import searches
from .record_files import read, read_folder
from .run import STATUSES, Problem, RecordsError, Run, cause, order
from .tidy_csv import read_csv, records_named

CSV_NAME = "runs.csv"


@dataclass(frozen=True)
class RecordSet:
    """Runs below `root` in a fixed order, all files or rows that could not be read, and the
    searches for the largest batch next to them."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]
    root: Path
    searches: tuple[searches.Result, ...] = ()


def load(path: Path) -> RecordSet:
    """Read a folder of records, a folder with runs.csv, or a tidy CSV of runs.

    A CSV next to the folder ``runs`` whose rows name records there stands for these. Raises
    RecordsError for another path, or a CSV with other columns.
    """
    named = records_named(path) if path.is_file() and path.suffix == ".csv" else []
    if named and (path.parent / "runs").is_dir():
        path = path.parent / "runs"
    if not path.exists():
        raise RecordsError(f"records: {path} does not exist; allowed: a folder or a CSV file")
    is_csv = path.is_file() and path.suffix == ".csv"
    if not is_csv and not path.is_dir():
        raise RecordsError(f"records: {path} is neither a folder of records nor a CSV file")
    runs: list[Run] = []
    problems: list[Problem] = []
    searched: list[searches.Result] = []
    if not is_csv:
        # records have no reference cycles; searching for some takes a sixth of the time
        gc.disable()
        try:
            runs, problems = read_folder(path, [path / name for name in named])
        finally:
            gc.enable()
        searched, of_searches = searches.load(path.parent / searches.FOLDER)
        problems += of_searches
    table = path if is_csv else path / CSV_NAME
    if table.is_file():
        rows, of_rows = read_csv(table)
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

    Runs that failed early do not know their version. They get that of their framework and source,
    if it is unique; otherwise a failed repeat would be its own case.
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
