"""Records and tidy CSV files read into runs: the one door through which measurements come in.

Whatever a file holds, reading is a pure function of the set of files: their order does not
matter, and a bad file or row becomes a `Problem` and never stops the others.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..machine.identities import Identity, completed
from . import searches
from .record_files import VARIANT, read, read_folder
from .run import STATUSES, Problem, RecordsError, Run, cause, order
from .tidy_csv import read_csv

__all__ = [
    "STATUSES",
    "Problem",
    "RecordSet",
    "RecordsError",
    "Run",
    "fingerprint",
    "load",
    "load_record",
    "machine_label",
    "measured_as",
    "of_variant",
]

CSV_NAME = "runs.csv"
_HARDWARE, _ENVIRONMENT = "hw=", "env="
_TOLD = [f.name for f in fields(Run) if f.name not in ("record", "step_seconds")]


@dataclass(frozen=True)
class RecordSet:
    """All runs below `root`, in a fixed order, and all that could not be read.

    `superseded` counts earlier attempts of a repeat that a later attempt replaced.
    """

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]
    root: Path
    superseded: int


def load(path: Path) -> RecordSet:
    """Read a folder of records, a folder that holds runs.csv, or a tidy CSV of runs.

    Raises RecordsError for a path that is none of these, or a CSV with other columns.
    """
    if path.is_file() and path.suffix == ".csv":
        root, (runs, problems), superseded = path.parent, read_csv(path), 0
    elif path.is_dir():
        root = path
        runs, problems, superseded = read_folder(path)
        runs = _with_largest(runs, searches.largest(path.parent / searches.FOLDER))
        if (path / CSV_NAME).is_file():
            rows, row_problems = _rows_beside(path / CSV_NAME, bool(runs))
            runs, problems = runs + rows, problems + row_problems
    elif not path.exists():
        raise RecordsError(f"records: {path} does not exist; allowed: a folder or a CSV file")
    else:
        raise RecordsError(f"records: {path} is neither a folder of records nor a CSV file")
    distinct = _told_apart(_with_known_version(runs))
    return RecordSet(
        runs=tuple(sorted(distinct, key=order)),
        problems=tuple(sorted(problems, key=lambda problem: (problem.origin, problem.message))),
        root=root,
        superseded=superseded,
    )


def _rows_beside(path: Path, beside_others: bool) -> tuple[list[Run], list[Problem]]:
    """As :func:`read_csv`; beside records a file that cannot be read is no more than a problem."""
    try:
        return read_csv(path)
    except RecordsError as error:
        if not beside_others:
            raise
        return [], [Problem(path.name, str(error))]


def measured_as(run: Run) -> str:
    """The variant of a run from a record, without what tells it apart from others of the set."""
    tokens = run.variant.split(";")
    return ";".join(one for one in tokens if not one.startswith((_HARDWARE, _ENVIRONMENT)))


def of_variant(found: RecordSet, name: str) -> tuple[Run, ...]:
    """The runs of one variant of a suite, as if it had none, to be compared with another's. Raises
    RecordsError where there is none of that name."""
    tokens = [run.variant.split(";") for run in found.runs]
    wanted = f"{VARIANT}={name}"
    if not any(wanted in one for one in tokens):
        there = {token.partition("=")[2] for one in tokens for token in one if _is_variant(token)}
        raise RecordsError(
            f"{found.root}: no run is of variant {name!r}; there are: "
            f"{', '.join(sorted(there)) or 'none'}"
        )
    return tuple(
        replace(run, variant=";".join(token for token in one if token != wanted))
        for run, one in zip(found.runs, tokens, strict=True)
        if wanted in one
    )


def _is_variant(token: str) -> bool:
    return token.startswith(f"{VARIANT}=")


def fingerprint(found: RecordSet) -> str:
    """SHA-256 (hex) over everything that tables and report depend on, in any order of the runs.

    That is all of a run but where its record lies on this machine, and what could not be read.
    """
    digests = sorted(_digest(run) for run in found.runs)
    rest = repr((sorted(map(repr, found.problems)), found.superseded)).encode()
    return hashlib.sha256(b"".join([*digests, rest])).hexdigest()


def _digest(run: Run) -> bytes:
    told = [getattr(run, name) for name in _TOLD]
    # The steps as bytes: as text they would take longer than everything else together.
    steps = array("d", run.step_seconds).tobytes()
    return hashlib.sha256(repr(told).encode("utf-8", "backslashreplace") + steps).digest()


def load_record(path: Path) -> dict[str, Any]:
    """The whole record at `path`, checked against the schema; RecordsError if it is none."""
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise RecordsError(f"{path}: {cause(error)}") from error


def _with_known_version(runs: Iterable[Run]) -> list[Run]:
    """Runs that died before they could ask for the framework's version get it from the others of
    their framework and source, if these agree; else one failed repeat would be a case of its own.
    """
    runs = list(runs)
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs:
        if run.framework_version:
            versions[run.framework, run.source].add(run.framework_version)
    known = {key: next(iter(found)) for key, found in versions.items() if len(found) == 1}
    return [
        run
        if run.framework_version or (run.framework, run.source) not in known
        else replace(run, framework_version=known[run.framework, run.source])
        for run in runs
    ]


def _with_largest(runs: list[Run], largest: frozenset[searches.Key]) -> list[Run]:
    """Runs that know whether their batch is the largest that fits, as some search found."""
    if not largest:
        return runs
    return [replace(run, largest=searches.key_of(run) in largest) for run in runs]


def _told_apart(runs: Sequence[Run]) -> list[Run]:
    """Append ;hw= or ;env= to the variant where runs that would share a row or a ratio come from
    different machines or environments.

    The group is all that a table may divide by each other, so all precisions, compilers, batches
    and device counts: a 1n1g of one machine must not be the baseline of an 8-device run of another.
    """
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        key = (run.framework, run.framework_version, run.source, run.model, run.mode, run.variant)
        groups[key].append(run)
    marked = []
    fuller = completed(run.machine for run in runs)
    for group in groups.values():
        machines = {fuller[run.machine] for run in group if run.hardware}
        environments = {run.environment for run in group} - {""}
        for run in group:
            tokens = [run.variant]
            machine = fuller[run.machine]
            if run.hardware and len(machines) > 1:
                tokens.append(machine_label(machine))
            if run.environment and len(environments) > 1:
                tokens.append(f"{_ENVIRONMENT}{_six(run.environment)}")
            variant = ";".join(filter(None, tokens))
            marked.append(replace(run, variant=variant, machine=machine))
    return marked


def machine_label(machine: Identity) -> str:
    """The token by which a variant names a machine."""
    return f"{_HARDWARE}{_six(str(machine))}"


def _six(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:6]
