"""Result sets by path: which exist, and the figures of their cases."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ... import PROJECT
from ...cases import units
from ...cases.conditions import Key
from ...comparison import circumstances
from ...config import catalog
from ...files.problem import Problem
from ...records import record_sets, verifications, verified
from ...records.run import RecordsError
from ...tables import grouping
from ...tables.results import CaseResult, flags_of


@dataclass(frozen=True)
class HistoryPoint:
    """Figure of a case in one set.
    ``source``: name of the set; ``key``: without the version and without labels that distinguish
    runs within a set; ``started``: start of the first run, in seconds since the epoch; ``facts``:
    environment and settings; ``status``: other than ok, the figure is compared with no other."""

    source: str
    key: Key
    interval: tuple[float, float] | None
    facts: Mapping[str, Any]
    better: str
    version: str
    commit: str
    started: float | None
    status: str
    reason: str
    repeats: int
    median: float | None
    flags: str

    def in_unit(self, unit: str) -> HistoryPoint:
        """Return the point in another unit of the same quantity."""
        factor = units.factor(self.key.unit, unit) or 1.0
        if unit == self.key.unit:
            return self
        return replace(
            self,
            key=self.key._replace(unit=unit),
            median=None if self.median is None else factor * self.median,
            interval=self.interval and (factor * self.interval[0], factor * self.interval[1]),
        )


def load(paths: Sequence[Path]) -> tuple[list[HistoryPoint], list[Problem], int]:
    """Return the points of the sets at these paths, problems with parts that could not be read, and
    the number of sets. Raises RecordsError if no set can be read."""
    found = find(paths)
    points: list[HistoryPoint] = []
    problems: list[Problem] = []
    failures: list[Problem] = []
    for name, path in found.items():
        try:
            of_set, unread = _read(path, name)
        except (RecordsError, OSError) as error:
            failures.append(Problem(name, str(error)))
            continue
        points += of_set
        problems += [Problem(f"{name}: {entry.origin}", entry.message) for entry in unread]
    if len(failures) == len(found):
        raise RecordsError(failures[0].message)
    return points, [*failures, *problems], len(found)


def find(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the sets at these paths, or in these folders, by their path below the common folder.
    Raises RecordsError if a path holds none."""
    found: dict[Path, None] = {}
    for path in paths:
        below = path.iterdir() if path.is_dir() else ()
        inner = [path] if is_set(path) else sorted(path for path in below if is_set(path))
        if not inner:
            raise RecordsError(
                f"sets: {path} holds no results; allowed: folders of results or of records, CSVs "
                "of runs, or a folder of these"
            )
        found.update(dict.fromkeys(inner))
    common = os.path.commonpath([path.absolute().parent for path in found])
    return {os.path.relpath(path.absolute(), common): path for path in found}


def is_set(path: Path) -> bool:
    """Return whether a path is itself a result set."""
    if path.is_file():
        return path.suffix == ".csv"
    if path.name.startswith(".") or not path.is_dir():
        return False
    here = [entry.name for entry in os.scandir(path)]
    records = any(name.endswith(".json") or name == record_sets.CSV_NAME for name in here)
    return "runs" in here or records or _holds_records(path)


def _holds_records(path: Path) -> bool:
    """Return whether a folder has nested folders of records, like ``runs`` in results."""
    return any(path.glob("*/*/*/r[0-9]*.json")) and not any(path.glob("*/runs"))


def _read(path: Path, name: str) -> tuple[list[HistoryPoint], list[Problem]]:
    """Return the points of a set, and problems with parts that could not be read.
    Raises RecordsError if nothing can be read."""
    records = path / "runs" if (path / "runs").is_dir() else path
    record_set = record_sets.load(records)
    verification_results, problems = verifications.load(records.parent / "verification")
    cases = grouping.group(
        record_set.runs, verified.VerificationFlags(verification_results, _models())
    )
    points, ambiguous = _points(cases, name)
    return points, [*record_set.problems, *problems, *ambiguous]


@cache
def _models() -> Mapping[str, Mapping[str, Any]]:
    """Return the configs of the project's models, read once."""
    return catalog.load_catalog(PROJECT).models


def _points(
    cases: Mapping[Key, CaseResult], source: str
) -> tuple[list[HistoryPoint], list[Problem]]:
    grouped: dict[Key, list[CaseResult]] = defaultdict(list)
    for key, result in cases.items():
        plain = key._replace(conditions=key.conditions.unlabelled).at(framework_version="")
        grouped[plain].append(result)
    points, problems = [], []
    for key, some in grouped.items():
        if len(some) > 1:
            case = key.case
            name = " ".join(filter(None, (case.framework, case.model, case.mode)))
            problems.append(
                Problem(
                    name, f"{len(some)} versions, machines or environments in one set: left out"
                )
            )
            continue
        points.append(_point(key.without_versions, some[0], source))
    return points, problems


def _point(key: Key, result: CaseResult, source: str) -> HistoryPoint:
    runs = result.ok or result.runs
    return HistoryPoint(
        source=source,
        key=key,
        better=result.better,
        version=result.case.framework_version,
        commit=next((run.commit for run in runs if run.commit), ""),
        started=min((run.started for run in runs if run.started is not None), default=None),
        status=result.standing,
        reason=result.excluded or result.reason,
        repeats=len(result.values),
        median=result.throughput,
        interval=result.interval,
        flags=flags_of(result),
        facts=circumstances.of_first_ok(runs),
    )
