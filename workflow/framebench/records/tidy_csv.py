"""Tidy CSV of runs: one row per repeat, with the columns of DLPerf's published runs.

With the columns ``metric`` and ``value`` instead of ``throughput`` it holds figures of any
benchmark. Results of other tools are imported, and ours exported, in that form.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core import axes, bounded, observed
from core.case import Case
from core.inputs import NATIVE
from core.text import printable

from ..cases.conditions import (
    CONDITIONS,
    MODES,
    THROUGHPUT,
    Conditions,
    Key,
    Parameters,
    input_axis,
)
from ..config.validation import show
from ..files.text import cut, from_cell, no_formula
from .run import NO_REASON, STATUSES, Flag, MetricValue, Problem, RecordsError, Run, cause, order

COLUMNS = (
    "framework",
    "framework_version",
    "source",
    "model",
    "mode",
    "precision",
    "compiler",
    "input_pipeline",
    "variant",
    "batch_per_device",
    "nodes",
    "devices_per_node",
    "repeat",
    "throughput",
    "unit",
)
#: Columns of figures of any benchmark, instead of ``throughput``.
OF_METRIC = ("metric", "value")
#: Conditions, by their column names in all tables.
_CONDITIONS = tuple(name for name in CONDITIONS if name not in ("input", "source_variant"))
#: Column with the file of a run's record, below the folder ``runs`` next to the CSV.
RECORD = "record"
OPTIONAL_COLUMNS = ("status", "reason", "better", "parameters", "flags", *_CONDITIONS, RECORD)
BETTER = ("higher", "lower")
#: Flag that follows from the repeats of a case, so that readers of the file derive it again.
OF_REPEATS = "noisy"
#: Limits of the record schema; tables and plots cannot hold larger figures.
LARGEST_COUNT, LARGEST_RATE = 1_000_000, 1e15


def read_csv(path: Path) -> tuple[list[Run], list[Problem]]:
    """Return every row as a run, and the invalid rows. Raises RecordsError for wrong columns."""
    try:
        text = bounded.read_bytes(path).decode("utf-8-sig", "surrogateescape")
        reader = csv.reader(io.StringIO(text, newline=""))
        header = next(reader, [])
        rows = [(reader.line_num, row) for row in reader if row]
        _check_header(path, header, [cells for _, cells in rows])
    except RecordsError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise RecordsError(f"records: {path} cannot be read as CSV: {cause(error)}") from error
    runs: list[Run] = []
    problems: list[Problem] = []
    seen: dict[tuple[Any, ...], str] = {}
    for line, cells in rows:
        origin = f"{path.name}:{line}"
        try:
            run = _run_of_row(header, cells, origin)
        except ValueError as error:
            problems.append(Problem(origin, f"line {line}, {error}"))
            continue
        identity = order(run)[:-1]
        if identity in seen:
            problems.append(
                Problem(
                    origin,
                    f"line {line}, column repeat: found {run.repeat}, which {seen[identity]} "
                    "already has for the same case; allowed: each once",
                )
            )
            continue
        seen[identity] = origin
        runs.append(run)
    return runs, problems


def records_named(path: Path) -> list[str]:
    """Return the records that the rows of a CSV name, each once; [] for a file without them."""
    try:
        text = bounded.read_bytes(path).decode("utf-8-sig", "surrogateescape")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except (OSError, ValueError, csv.Error):
        return []
    return list(dict.fromkeys(from_cell(name) for row in rows if (name := row.get(RECORD))))


def _check_header(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    of_any = any(name in header for name in OF_METRIC)
    needed = [name for name in COLUMNS if not (of_any and name == THROUGHPUT)]
    needed += OF_METRIC if of_any else ()
    missing = [name for name in needed if name not in header]
    # An earlier version may have written a column that is empty throughout.
    filled = {name for row in rows for name, cell in zip(header, row, strict=False) if cell}
    known = {*needed, *OPTIONAL_COLUMNS}
    extra = [name for name in header if name not in known and (name in filled or not rows)]
    twice = sorted({name for name in header if header.count(name) > 1})
    found = {"missing": missing, "not known": extra, "there twice": twice}
    if any(found.values()):
        said = "; ".join(
            f"{what}: {cut(', '.join(map(repr, names)), 400)}"
            for what, names in found.items()
            if names
        )
        raise RecordsError(
            f"records: {path}, line 1: wrong columns ({said}); allowed: "
            f"{','.join(COLUMNS)}, with {','.join(OF_METRIC)} in the place of {THROUGHPUT} for "
            f"figures of any kind, and, after them, {','.join(OPTIONAL_COLUMNS)}"
        )


def _run_of_row(header: Sequence[str], cells: Sequence[str], origin: str) -> Run:
    if len(cells) != len(header):
        raise ValueError(f"found {len(cells)} cells; allowed: {len(header)}, as in the header")
    if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
        raise ValueError("found bytes that are no UTF-8 text")
    row = {
        name: printable(from_cell(cell.strip())) for name, cell in zip(header, cells, strict=True)
    }
    return run_of(row, origin)


def run_of(row: Mapping[str, str], origin: str) -> Run:
    """Return a row as a run.

    Benchmarks without steps may lack fields of steps, which are "" or 0 then. Raises ValueError
    with column, found value and allowed values.
    """
    status = _one_of(row, "status", STATUSES) if row.get("status") else "ok"
    mode = _mode(row)
    is_step = mode in MODES
    is_stated = "metric" not in row  # tables with throughput state all of a case

    def text(column: str, is_needed: bool = is_step) -> str:
        return _text(row, column) if is_needed else row[column]

    def count(column: str) -> int:
        return _count(row, column) if is_step or row[column] else 0

    flags = row.get("flags", "").split()
    if wrong := [flag for flag in flags if not re.fullmatch("[a-z]+", flag)]:
        raise ValueError(
            f"column flags: found {show(wrong[0])}; allowed: words, with blanks between"
        )
    known = _conditions(row)
    in_case = {field: known.pop(name) for name, field in observed.IN_CASE.items() if name in known}
    return Run(
        case=Case(
            framework=text("framework"),
            framework_version=text("framework_version", is_stated),
            source=_text(row, "source"),
            model=text("model"),
            mode=mode,
            precision=text("precision", is_stated),
            compiler=text("compiler", is_stated),
            nodes=count("nodes"),
            devices_per_node=count("devices_per_node"),
            batch_per_device=count("batch_per_device"),
            parameters=_parameters(row, mode),
            # An unnamed pipeline counts as the native one.
            input=input_axis(mode, row["input_pipeline"] or NATIVE),
            **in_case,
        ),
        conditions=Conditions(
            input=row["input_pipeline"] or NATIVE, source_variant=row["variant"], **known
        ),
        repeat=_count(row, "repeat"),
        attempt=0,
        status=status,
        reason="" if status == "ok" else row.get("reason", "") or NO_REASON,
        metrics=(_metric(row, status),),
        step_seconds=(),
        wall_seconds=None,
        origin=origin,
        hardware="",
        environment="",
        record=None,
        flags=tuple(Flag(flag, "") for flag in flags) if status == "ok" else (),
    )


def rows_of(run: Run, flags: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return a row for each metric of a run, with every column; :func:`run_of` reads it back.

    A metric's point is among the parameters. ``flags``: flags of the case; OF_REPEATS is left
    out.
    """
    case, conditions, ok = run.case, run.conditions, run.status == "ok"
    known = run.key.row
    given = {name: _cell(known[name]) for name in _CONDITIONS}
    counts = ("nodes", "devices_per_node", "batch_per_device")
    texts = ("framework", "framework_version", "source", "model", "mode", "precision", "compiler")
    return [
        {
            **{name: str(getattr(case, name)) for name in texts},
            "input_pipeline": "" if conditions.input == NATIVE else conditions.input,
            "variant": conditions.source_variant,
            **{name: _cell(getattr(case, name) or None) for name in counts},
            "repeat": str(run.repeat),
            "metric": metric.name,
            "value": repr(metric.value) if ok and metric.value is not None else "",
            "unit": metric.unit,
            "status": run.status,
            "reason": run.reason,
            "better": metric.better,
            "parameters": _json({**dict(case.parameters), **dict(metric.point)}),
            "flags": " ".join(sorted({*flags} - {OF_REPEATS})) if ok else "",
            **given,
        }
        for metric in run.metrics
    ]


def text_of(rows: Iterable[Mapping[str, str]]) -> str:
    """Return the CSV text of rows with the columns of :func:`rows_of`."""
    columns = [name for name in COLUMNS if name != THROUGHPUT]
    columns[columns.index("unit") : columns.index("unit")] = OF_METRIC
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*columns, *OPTIONAL_COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: no_formula(cell) for name, cell in row.items()} for row in rows)
    return out.getvalue()


def row_of(run: Run, key: Key, flags: Iterable[str] = ()) -> dict[str, str] | None:
    """Return the row of one metric of a run; None if the run does not have it."""
    metrics = [(metric.name, metric.point) for metric in run.metrics]
    if (key.metric, key.point) not in metrics:
        return None
    return rows_of(run, flags)[metrics.index((key.metric, key.point))]


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values) if values else ""


def _cell(value: Any) -> str:
    return "" if value is None or value is False else str(value)


def _mode(row: Mapping[str, str]) -> str:
    if "metric" not in row:
        return _one_of(row, "mode", MODES)
    if not re.fullmatch("[a-z][a-z0-9_]{0,63}", row["mode"]):
        raise ValueError(
            f"column mode: found {show(row['mode'])}; allowed: {', '.join(MODES)}, or the name of "
            "another benchmark (a-z, 0-9, _)"
        )
    return row["mode"]


def _conditions(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the conditions in a row, converted to their types, without empty ones."""
    results: dict[str, Any] = {}
    for condition in observed.CONDITIONS:
        if condition.name not in _CONDITIONS or not row.get(condition.name):
            continue
        if condition.form == axes.TEXT:
            results[condition.name] = row[condition.name]
        elif condition.form == axes.YES_NO:
            results[condition.name] = _one_of(row, condition.name, ("True", "False")) == "True"
        else:
            results[condition.name] = (
                0 if row[condition.name] == "0" else _count(row, condition.name)
            )
    return results


def _parameters(row: Mapping[str, str], mode: str) -> Parameters:
    """Return the parameters of a benchmark; () for steps."""
    if not row.get("parameters"):
        return ()
    try:
        content = json.loads(row["parameters"])
    except ValueError:
        content = None
    scalar = (str, int, float, bool, type(None))
    if (
        mode in MODES
        or not isinstance(content, dict)
        or not all(isinstance(value, scalar) for value in content.values())
    ):
        raise ValueError(
            f"column parameters: found {show(row['parameters'])}; allowed: nothing for "
            f"{' and '.join(MODES)}, else a JSON object of texts and numbers"
        )
    return tuple(sorted(content.items()))


def _metric(row: Mapping[str, str], status: str) -> MetricValue:
    if "metric" not in row:
        return MetricValue(THROUGHPUT, _figure(row, status, THROUGHPUT, True), _text(row, "unit"))
    name = _text(row, "metric")
    better = _one_of(row, "better", BETTER) if row.get("better") else "higher"
    if row["mode"] in MODES:
        if (name, better) != (THROUGHPUT, "higher"):
            raise ValueError(
                f"column metric: found {show(name)}, of which {better} is better, for "
                f"{row['mode']}; allowed: {THROUGHPUT}, of which higher is better; other figures "
                "have a mode of their own"
            )
        return MetricValue(name, _figure(row, status, "value", True), _text(row, "unit"))
    return MetricValue(name, _figure(row, status, "value", False), row["unit"], better)


def _figure(row: Mapping[str, str], status: str, column: str, is_rate: bool) -> float | None:
    """Return the figure of an ok row; None for another status, which must have none.
    A rate is above 0."""
    text = row[column]
    if status != "ok":
        if text:
            raise ValueError(
                f"column {column}: found {show(text)} beside status {status}; allowed: nothing"
            )
        return None
    value = _number(text)
    if not (1 / LARGEST_RATE if is_rate else -LARGEST_RATE) <= value <= LARGEST_RATE:
        allowed = "a number above 0, up" if is_rate else "a number up"
        raise ValueError(
            f"column {column}: found {show(text)} beside status ok; allowed: {allowed} to "
            f"{LARGEST_RATE:g} (a run without a result has another status, in a column `status`)"
        )
    return value


def _number(text: str) -> float:
    """Return the number in a text; NaN for other text."""
    try:
        return math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
    except ValueError:
        return math.nan


def _text(row: Mapping[str, str], column: str) -> str:
    if not row[column]:
        raise ValueError(f"column {column}: found nothing; allowed: any text")
    return row[column]


def _one_of(row: Mapping[str, str], column: str, allowed: Sequence[str]) -> str:
    if row[column] not in allowed:
        raise ValueError(
            f"column {column}: found {show(row[column])}; allowed: {', '.join(allowed)}"
        )
    return row[column]


def _count(row: Mapping[str, str], column: str) -> int:
    text = row[column]
    if not re.fullmatch("0*[1-9][0-9]{0,6}", text) or int(text) > LARGEST_COUNT:
        raise ValueError(
            f"column {column}: found {show(text)}; allowed: a whole number from 1 to "
            f"{LARGEST_COUNT}"
        )
    return int(text)
