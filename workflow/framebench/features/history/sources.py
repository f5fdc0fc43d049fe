"""Result sets by path: which exist, and the figures of their cases."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...cases.conditions import Key
from ...comparison import compare
from ...config.values import RecordSource
from ...files.problem import Problem
from ...records import record_sets
from ...records.run import RecordsError
from ...tables.results import CaseResult, grouped


@dataclass(frozen=True)
class HistoryPoint:
    """Figure of a case in one set.
    ``source``: name of the set; ``key``: without the version and without labels that distinguish
    runs within a set; ``result``: the repeats, without their steps; ``facts``: environment and
    settings."""

    source: str
    key: Key
    result: CaseResult
    facts: Mapping[str, Any]

    @property
    def version(self) -> str:
        return self.result.case.framework_version

    @property
    def started(self) -> float | None:
        """Start of the first run, in seconds since the epoch."""
        runs = self.result.ok or self.result.runs
        return min((run.started for run in runs if run.started is not None), default=None)


def load(paths: Sequence[Path]) -> tuple[list[HistoryPoint], list[Problem], int]:
    """Return the points of the sets at these paths, sets and cases that are left out, and the
    number of sets. Prints ignored parts of a set. Raises RecordsError if no set can be read."""
    found = find(paths)
    points: list[HistoryPoint] = []
    problems: list[Problem] = []
    failures: list[Problem] = []
    for name, path in found.items():
        try:
            of_set, left_out = _read(path, name)
        except (RecordsError, OSError) as error:
            failures.append(Problem(name, str(error)))
            continue
        points += of_set
        problems += left_out
    if len(failures) == len(found):
        raise RecordsError(failures[0].message)
    return points, [*failures, *problems], len(found)


def find(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the sets at these paths, or in these folders, by their path below the common folder.
    Raises RecordsError if a path holds none."""
    found: list[Path] = []
    for path in paths:
        below = sorted(path.glob("[!.]*")) if path.is_dir() else []
        inner = [path] if is_set(path) else [one for one in below if is_set(one)]
        if not inner:
            raise RecordsError(
                f"sets: {path} holds no results; allowed: folders of results or of records, CSVs "
                "of runs, or a folder of these"
            )
        found += inner
    common = os.path.commonpath([path.absolute().parent for path in found])
    return {os.path.relpath(path.absolute(), common): path for path in found}


def is_set(path: Path) -> bool:
    """Return whether a path is itself a result set: a CSV, results, or a folder of records."""
    if not path.is_dir():
        return path.suffix == ".csv" and path.is_file()
    if (path / "runs").is_dir() or (path / record_sets.CSV_NAME).is_file():
        return True
    nested = any(path.glob("*/*/*/r[0-9]*.json")) and not any(path.glob("*/runs"))
    return nested or any(path.glob("*.json"))


def _read(path: Path, name: str) -> tuple[list[HistoryPoint], list[Problem]]:
    """Return the points of a set, and the cases that are left out.
    Raises RecordsError if nothing can be read."""
    points: list[HistoryPoint] = []
    left_out: list[Problem] = []
    several: dict[Key, list[CaseResult]] = defaultdict(list)
    records = path / "runs" if (path / "runs").is_dir() else path
    for key, result in grouped(RecordSource(records, "")).items():
        plain = key._replace(conditions=key.conditions.unlabelled).at(framework_version="")
        several[plain].append(result)
    for key, (result, *others) in several.items():
        if others:
            case = " ".join(filter(None, (key.case.framework, key.case.model, key.case.mode)))
            why = f"{1 + len(others)} versions, machines or environments in one set: left out"
            left_out.append(Problem(f"{name}: {case}", why))
            continue
        facts = compare.environment_of(result.ok or result.runs)
        runs = tuple(replace(run, step_seconds=(), waited_apart=()) for run in result.runs)
        points.append(HistoryPoint(name, key.without_versions, replace(result, runs=runs), facts))
    return points, left_out
