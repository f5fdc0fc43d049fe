"""Trends: figures of each case over ordered result sets, and changes of their level."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from ... import comparison
from ...cases.conditions import Key
from ...cases.names import batch_of
from ...config.validation import RecordSource
from ...files.json_files import Problem
from ...records import record_sets
from ...records.run import RecordsError
from ...statistics import change_points, descriptive, intervals
from ...statistics.change_points import ChangePoint
from ...tables import measured
from ...tables.columns import Row, interval_cells
from ...tables.formatting import counted
from ...tables.results import CaseResult, flags_of, grouped
from ...tables.table import tables_in

BETTER, WORSE = "better", "worse"

POINTS, CHANGES = tables_in(Path(__file__).with_name("tables.yaml")).values()


@dataclass(frozen=True)
class HistoryPoint:
    """Figure of a case in one set.
    ``source``: name of the set; ``key``: without the version and without labels that distinguish
    runs within a set; ``result``: the repeats, without step times; ``facts``: environment and
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
    if (path / "runs").is_dir() or (path / record_sets.RUNS).is_file():
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
        facts = comparison.environment_of(result.ok or result.runs)
        runs = tuple(replace(run, step_seconds=(), waited_apart=()) for run in result.runs)
        points.append(HistoryPoint(name, key.without_versions, replace(result, runs=runs), facts))
    return points, left_out


@dataclass(frozen=True)
class CaseHistory:
    """A case over its sets.
    ``labels``: name of each set; ``measured``: all sets in order."""

    key: Key
    labels: Sequence[str]
    measured: Sequence[HistoryPoint]
    changes: Sequence[ChangePoint] = ()

    @property
    def places(self) -> list[int]:
        """Return the indices of the sets with a figure. ``changes`` refer to this list."""
        return [n for n, one in enumerate(self.measured) if (one.result.compared or 0) > 0]

    @property
    def values(self) -> list[float]:
        """Return the figures of all sets that have one."""
        return [value for n in self.places if (value := self.measured[n].result.compared)]


def series_of(points: Sequence[HistoryPoint], by: str) -> tuple[list[CaseHistory], list[Problem]]:
    """Return a series for each case, and a problem for each set without a position. ``by``:
    ``date``, ``version`` or ``name``."""
    grouped: dict[Key, list[tuple[Any, str, HistoryPoint]]] = defaultdict(list)
    missing = Counter[str]()
    for point in points:
        position, label = _position(point, by)
        if not label:
            missing[point.source] += 1
            continue
        # A set may have several versions of a user's own model.
        order = position, point.source, point.started or 0.0
        grouped[point.key].append((order, label, point))
    every = []
    for key in sorted(grouped, key=lambda key: key.order):
        some = sorted(grouped[key], key=lambda place: place[0])
        labels, measured_sets = [label for _, label, _ in some], [point for *_, point in some]
        every.append(CaseHistory(key, labels, measured_sets))
    count = tests(every)
    every = [
        replace(series, changes=change_points.changes(series.values, count)) for series in every
    ]
    return every, [
        Problem(name, f"{count} cases without a known {by} are left out")
        for name, count in missing.items()
    ]


def tests(every: Sequence[CaseHistory]) -> int:
    """Return the number of series that are long enough to be tested, at least 1."""
    return max(1, sum(len(series.places) >= change_points.FEWEST for series in every))


def changes_frame(every: Sequence[CaseHistory]) -> pd.DataFrame:
    """Return a table row for each change."""
    count = tests(every)
    return CHANGES.frame(
        _change_row(series, change, count) for series in every for change in series.changes
    )


def counts_text(every: Sequence[CaseHistory]) -> str:
    """Return the number of series, of changes, and of series that are too short to have any."""
    changes = counted(sum(len(series.changes) for series in every), "change")
    short = sum(len(series.places) < change_points.FEWEST for series in every)
    few = f"; {short} series have fewer than {change_points.FEWEST} sets with a figure: too few "
    few += "to show changes"
    return f"{len(every)} series, {changes}" + (few if short else "")


def summary_text(every: Sequence[CaseHistory], changes: pd.DataFrame) -> str:
    """Return a line for each change, and the number of series."""
    lines = []
    row: Any
    for row in changes.itertuples():
        parts = (row.framework, row.model, row.mode, row.precision, batch_of(row))
        name = " ".join(filter(None, parts))
        lines.append(f"{name}: jump {row.ratio:.3f} at {row.before} -> {row.at}")
        lines += [f"    {text}" for text in filter(None, [row.differences])]
    return "\n".join([*lines, counts_text(every)])


def _case_cells(series: CaseHistory, point: HistoryPoint) -> dict[str, Any]:
    """Return the cells of the case that both tables share, with the version of ``point``."""
    return {
        **series.key.at(framework_version=point.version).row,
        "parameters": measured.parameters_text(series.key.case),
        "metric": series.key.metric,
    }


def point_rows(series: CaseHistory) -> Iterator[Row]:
    """Yield the cells of a case in each set; nothing is rounded."""
    begins = {series.places[change.at] for change in series.changes}
    for number, (label, point) in enumerate(zip(series.labels, series.measured, strict=True)):
        result = point.result
        yield {
            **_case_cells(series, point),
            "position": number + 1,
            "label": label,
            "set": point.source,
            "started": _date(point.started),
            "commit": next((run.commit for run in result.ok or result.runs if run.commit), ""),
            "model_version": point.facts.get("model_version", ""),
            "median": result.throughput,
            "unit": series.key.unit,
            **interval_cells("median", result.interval),
            "repeats": len(result.values),
            "status": result.standing,
            "reason": result.excluded or result.reason,
            "change": "jump" if number in begins else "",
            "flags": flags_of(result),
        }


def _change_row(series: CaseHistory, change: ChangePoint, count: int) -> Row:
    values, places = series.values, series.places
    before, after = values[change.start : change.at], values[change.at : change.end]
    old, new = places[change.at - 1], places[change.at]
    ratio = descriptive.median(after) / descriptive.median(before)
    both = intervals.ratio_interval(before, after)
    one, other = (series.measured[index] for index in (old, new))
    if other.result.better == "lower":
        ratio, both = 1 / ratio, both and (1 / both[1], 1 / both[0])
    return {
        **_case_cells(series, other),
        "direction": BETTER if ratio > 1 else WORSE,
        "before": series.labels[old],
        "at": series.labels[new],
        "points_before": len(before),
        "points_after": len(after),
        "ratio": ratio,
        **interval_cells("ratio", both),
        "p_adjusted": min(1.0, change.p_value * count),
        "differences": _differences(one, other),
        "flags": flags_of(one.result, other.result),
    }


def _differences(point: HistoryPoint, other: HistoryPoint) -> str:
    """Return the differences in version, environment and settings between two sets, as text."""
    if not point.facts or not other.facts:
        return "the conditions of the measurements are unknown"
    found = list(comparison.environment_differences(point.facts, other.facts))
    if point.version != other.version:
        found.insert(0, f"framework_version {point.version} -> {other.version}")
    return "; ".join(found) or "nothing that the records show"


def _position(point: HistoryPoint, by: str) -> tuple[Any, str]:
    """Return a sort key and the label of a set; the label is "" if it has no position."""
    if by == "name":
        return _natural(point.source), point.source
    if by == "version":
        return (_natural(point.version), point.started or 0.0), point.version
    return point.started, _date(point.started)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders 2.10 after 2.9."""
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", text)
    ]


def _date(started: float | None) -> str:
    if started is None:
        return ""
    return datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%d %H:%M")
