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

from core import axes, bounded
from core.axes import NATIVE
from core.case import Case
from core.text import printable, shorten

from ..cases.conditions import (
    CONDITIONS,
    MODES,
    THROUGHPUT,
    Conditions,
    Parameters,
    input_axis,
)
from ..config.statuses import OK, STATUSES
from ..config.validation import show
from ..files.json_files import Problem, cause
from .run import NO_REASON, Flag, MetricValue, RecordsError, Run, order

#: Columns of a case that are texts, and that are counts.
_TEXTS = (
    "framework", "framework_version", "source", "model", "mode", "precision", "compiler",
)  # fmt: skip
_COUNTS = ("batch_per_device", "nodes", "devices_per_node")
COLUMNS = (*_TEXTS, "input_pipeline", "variant", *_COUNTS, "repeat", THROUGHPUT, "unit")
#: Columns of figures of any benchmark, instead of ``throughput``.
OF_METRIC = ("metric", "value")
#: Conditions, by their column names in all tables.
_CONDITIONS = tuple(name for name in CONDITIONS if name not in ("input", "source_variant"))
#: Column with the file of a run's record, below the folder ``runs`` next to the CSV.
RECORD = "record"
OPTIONAL_COLUMNS = ("status", "reason", "better", "parameters", "flags", *_CONDITIONS, RECORD)
BETTER = ("higher", "lower")
#: Flag that is not written, because readers of the file derive it from the repeats of a case.
OF_REPEATS = "noisy"
#: Limits of the record schema; tables and plots cannot hold larger figures.
LARGEST_COUNT, LARGEST_RATE = 1_000_000, 1e15


def read_csv(path: Path) -> tuple[list[Run], list[Problem]]:
    """Return every row as a run, and the invalid rows. Raises RecordsError for wrong columns."""
    try:
        reader = csv.reader(io.StringIO(bounded.read_text(path), newline=""))
        header = next(reader, [])
        rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, ValueError, csv.Error) as error:
        raise RecordsError(f"records: {path} cannot be read as CSV: {cause(error)}") from error
    _check_header(path, header)
    runs: list[Run] = []
    problems: list[Problem] = []
    seen: dict[tuple[Any, ...], str] = {}
    for line, cells in rows:
        origin = f"{path.name}:{line}"
        try:
            if len(cells) != len(header):
                raise ValueError(f"found {len(cells)} cells; allowed: {len(header)}, as in line 1")
            texts = (printable(cell.strip()) for cell in cells)
            run = run_of(dict(zip(header, texts, strict=True)), origin)
            identity = order(run)[:-1]
            if identity in seen:
                raise ValueError(
                    f"column repeat: found {run.repeat}, which {seen[identity]} already has for "
                    "the same case; allowed: each once"
                )
        except ValueError as error:
            problems.append(Problem(origin, f"line {line}, {error}"))
            continue
        seen[identity] = origin
        runs.append(run)
    return runs, problems


def records_named(path: Path) -> list[str]:
    """Return the records that the rows of a CSV name, each once; [] for a file without them."""
    try:
        rows = [*csv.DictReader(io.StringIO(bounded.read_text(path), newline=""))]
    except (OSError, ValueError, csv.Error):
        return []
    return list(dict.fromkeys(name for row in rows if (name := row.get(RECORD))))


def _check_header(path: Path, header: Sequence[str]) -> None:
    figure = OF_METRIC if {*OF_METRIC} & {*header} else (THROUGHPUT,)
    needed = {*COLUMNS, *figure} - ({THROUGHPUT} if figure == OF_METRIC else set())
    missing, unknown = needed - {*header}, {*header} - {*needed, *OPTIONAL_COLUMNS}
    if missing or unknown:
        wrong = f"missing: {', '.join(sorted(missing))}; not known: {', '.join(sorted(unknown))}"
        raise RecordsError(
            f"records: {path}, line 1: wrong columns ({shorten(wrong)}); allowed: "
            f"{','.join(COLUMNS)}, with {','.join(OF_METRIC)} in the place of {THROUGHPUT} for "
            f"figures of any kind, and, after them, {','.join(OPTIONAL_COLUMNS)}"
        )


def run_of(row: Mapping[str, str], origin: str) -> Run:
    """Return a row as a run.

    Benchmarks without steps may lack fields of steps, which are "" or 0 then. Raises ValueError
    with column, found value and allowed values.
    """
    mode, is_step = row["mode"], row["mode"] in MODES
    if not is_step and not ("metric" in row and re.fullmatch("[a-z][a-z0-9_]{0,63}", mode)):
        others = "with a column metric the name of another benchmark (a-z, 0-9, _)"
        raise _refused(row, "mode", f"{', '.join(MODES)}, or {others}")
    status = _one_of(row, "status", STATUSES) if row.get("status") else OK
    for name in ("source", "framework", "model") if is_step else ("source",):
        if not row[name]:
            raise _refused(row, name, "any text")
    known = _conditions(row)
    case: dict[str, Any] = {name: row[name] for name in _TEXTS}
    case |= {name: _count(row, name) if is_step or row[name] else 0 for name in _COUNTS}
    case |= {field: known.pop(name) for name, field in axes.IN_CASE.items() if name in known}
    pipeline = row["input_pipeline"] or NATIVE  # an empty cell stands for the native pipeline
    return Run(
        case=Case(**case, parameters=_parameters(row, is_step), input=input_axis(mode, pipeline)),
        conditions=Conditions(input=pipeline, source_variant=row["variant"], **known),
        repeat=_count(row, "repeat"),
        attempt=0,
        status=status,
        reason="" if status == OK else row.get("reason", "") or NO_REASON,
        metrics=(_metric(row, status, is_step),),
        step_seconds=(),
        wall_seconds=None,
        origin=origin,
        hardware="",
        environment="",
        flags=tuple(Flag(flag, "") for flag in row.get("flags", "").split() if status == OK),
    )


def rows_of(run: Run, flags: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return a row for each metric of a run, with every column; :func:`run_of` reads it back.

    A metric's point is among the parameters. ``flags``: flags of the case; OF_REPEATS is left
    out.
    """
    case, conditions, ok = run.case, run.conditions, run.status == OK
    known = run.key.row
    same = {
        **{name: str(getattr(case, name)) for name in _TEXTS},
        "input_pipeline": "" if conditions.input == NATIVE else conditions.input,
        "variant": conditions.source_variant,
        **{name: _cell(getattr(case, name) or None) for name in _COUNTS},
        "repeat": str(run.repeat),
        "status": run.status,
        "reason": run.reason,
        "flags": " ".join(sorted({*flags} - {OF_REPEATS})) if ok else "",
        **{name: _cell(known[name]) for name in _CONDITIONS},
    }
    return [
        {
            **same,
            "metric": metric.name,
            "value": repr(metric.value) if ok and metric.value is not None else "",
            "unit": metric.unit,
            "better": metric.better,
            "parameters": json.dumps(parameters) if parameters else "",
        }
        for metric in run.metrics
        for parameters in [{**dict(case.parameters), **dict(metric.point)}]
    ]


def text_of(rows: Iterable[Mapping[str, str]]) -> str:
    """Return the CSV text of rows with the columns of :func:`rows_of`."""
    columns = [name for name in COLUMNS if name != THROUGHPUT]
    columns[columns.index("unit") : columns.index("unit")] = OF_METRIC
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*columns, *OPTIONAL_COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None or value is False else str(value)


def _conditions(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the conditions in a row, converted to their types, without empty ones."""
    results: dict[str, Any] = {}
    for condition in axes.CONDITIONS:
        name = condition.name
        if name not in _CONDITIONS or not row.get(name):
            continue
        if condition.form == axes.TEXT:
            results[name] = row[name]
        elif condition.form == axes.YES_NO:
            results[name] = _one_of(row, name, ("True", "False")) == "True"
        elif condition.form == axes.NUMBER:
            try:
                results[name] = condition.type(row[name])
            except ValueError as error:
                raise ValueError(f"column {name}: {error}") from None
        else:
            results[name] = 0 if row[name] == "0" else _count(row, name)
    return results


def _parameters(row: Mapping[str, str], is_step: bool) -> Parameters:
    """Return the parameters of a benchmark; () for steps."""
    if not row.get("parameters"):
        return ()
    try:
        content = {} if is_step else dict(json.loads(row["parameters"]))
    except (TypeError, ValueError):
        content = {}
    if not content or any(isinstance(value, (dict, list)) for value in content.values()):
        allowed = f"nothing for {' and '.join(MODES)}, else a JSON object of texts and numbers"
        raise _refused(row, "parameters", allowed)
    return tuple(sorted(content.items()))


def _metric(row: Mapping[str, str], status: str, is_step: bool) -> MetricValue:
    """Return the figure of an ok row; a row of another status must have none. Rates are above 0."""
    column = "value" if "metric" in row else THROUGHPUT
    name, text = row.get("metric", THROUGHPUT), row[column]
    better = _one_of(row, "better", BETTER) if row.get("better") else "higher"
    if not name or (is_step and (name, better) != (THROUGHPUT, "higher")):
        raise _refused(row, "metric", f"for steps {THROUGHPUT}, of which higher is better")
    if is_step and not row["unit"]:
        raise _refused(row, "unit", "any text")
    if status != OK:
        if text:
            raise _refused(row, column, f"nothing beside status {status}")
        return MetricValue(name, None, row["unit"], better)
    try:
        value = math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
    except ValueError:
        value = math.nan
    if not (1 / LARGEST_RATE if is_step else -LARGEST_RATE) <= value <= LARGEST_RATE:
        least = "above 0, " if is_step else ""
        raise _refused(row, column, f"a number {least}up to {LARGEST_RATE:g}, or another status")
    return MetricValue(name, value, row["unit"], better)


def _one_of(row: Mapping[str, str], column: str, allowed: Sequence[str]) -> str:
    if row[column] not in allowed:
        raise _refused(row, column, ", ".join(allowed))
    return row[column]


def _count(row: Mapping[str, str], column: str) -> int:
    text = row[column]
    if not re.fullmatch("0*[1-9][0-9]{0,6}", text) or int(text) > LARGEST_COUNT:
        raise _refused(row, column, f"a whole number from 1 to {LARGEST_COUNT}")
    return int(text)


def _refused(row: Mapping[str, str], column: str, allowed: str) -> ValueError:
    """Return the error for a cell."""
    return ValueError(f"column {column}: found {show(row[column])}; allowed: {allowed}")
