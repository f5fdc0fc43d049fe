"""A tidy CSV of runs: one row per repeat, with the columns of DLPerf's published runs."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..cases.conditions import MODES, NATIVE, THROUGHPUT, Case, Conditions
from ..files import json_files
from ..files.text import printable
from .run import NO_REASON, STATUSES, Metric, Problem, RecordsError, Run, cause, order

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
OPTIONAL_COLUMNS = ("status", "reason")
#: What the schema of a record allows, too: beyond it neither tables nor plots can hold a figure.
LARGEST_COUNT, LARGEST_RATE = 1_000_000, 1e15


def read_csv(path: Path) -> tuple[list[Run], list[Problem]]:
    """Every row as a run, and the rows that are none. RecordsError for wrong columns."""
    try:
        text = json_files.content_of(path).decode("utf-8-sig", "surrogateescape")
        reader = csv.reader(io.StringIO(text, newline=""))
        header = next(reader, [])
        _check_header(path, header)
        rows = [(reader.line_num, row) for row in reader if row]
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


def _check_header(path: Path, header: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    extra = [name for name in header if name not in COLUMNS + OPTIONAL_COLUMNS]
    twice = sorted({name for name in header if header.count(name) > 1})
    found = [("missing", missing), ("not known", extra), ("there twice", twice)]
    if any(names for _, names in found):
        said = "; ".join(f"{what}: {', '.join(map(repr, n))}" for what, n in found if n)
        raise RecordsError(
            f"records: {path}, line 1: wrong columns ({said}); allowed: "
            f"{','.join(COLUMNS)} and, after them, {','.join(OPTIONAL_COLUMNS)}"
        )


def _run_of_row(header: Sequence[str], cells: Sequence[str], origin: str) -> Run:
    if len(cells) != len(header):
        raise ValueError(f"found {len(cells)} cells; allowed: {len(header)}, as in the header")
    if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
        raise ValueError("found bytes that are no UTF-8 text")
    row = {name: printable(cell.strip()) for name, cell in zip(header, cells, strict=True)}
    status = _one_of(row, "status", STATUSES) if row.get("status") else "ok"
    return Run(
        case=Case(
            framework=_text(row, "framework"),
            framework_version=_text(row, "framework_version"),
            source=_text(row, "source"),
            model=_text(row, "model"),
            mode=_one_of(row, "mode", MODES),
            precision=_text(row, "precision"),
            compiler=_text(row, "compiler"),
            nodes=_count(row, "nodes"),
            devices_per_node=_count(row, "devices_per_node"),
            batch_per_device=_count(row, "batch_per_device"),
        ),
        conditions=Conditions(
            # Who does not name a pipeline had none of another kind.
            input=row["input_pipeline"] or NATIVE,
            source_variant=row["variant"],
        ),
        repeat=_count(row, "repeat"),
        attempt=0,
        status=status,
        reason="" if status == "ok" else row.get("reason", "") or NO_REASON,
        metrics=(Metric(THROUGHPUT, _throughput(row, status), _text(row, "unit")),),
        step_seconds=(),
        wall_seconds=None,
        origin=origin,
        hardware="",
        environment="",
        record=None,
    )


def _text(row: Mapping[str, str], column: str) -> str:
    if not row[column]:
        raise ValueError(f"column {column}: found nothing; allowed: any text")
    return row[column]


def _one_of(row: Mapping[str, str], column: str, allowed: Sequence[str]) -> str:
    if row[column] not in allowed:
        raise ValueError(f"column {column}: found {row[column]!r}; allowed: {', '.join(allowed)}")
    return row[column]


def _count(row: Mapping[str, str], column: str) -> int:
    text = row[column]
    if not re.fullmatch("0*[1-9][0-9]{0,6}", text) or int(text) > LARGEST_COUNT:
        raise ValueError(
            f"column {column}: found {text!r}; allowed: a whole number from 1 to {LARGEST_COUNT}"
        )
    return int(text)


def _throughput(row: Mapping[str, str], status: str) -> float | None:
    """Samples/s of an ok row. An unfinished run is a status, never a zero."""
    text = row["throughput"]
    if status != "ok":
        if text:
            raise ValueError(
                f"column throughput: found {text!r} beside status {status}; allowed: nothing"
            )
        return None
    try:
        value = math.nan if "_" in text else float(text)  # Python reads 1_0 as 10
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 1 / LARGEST_RATE <= value <= LARGEST_RATE):
        raise ValueError(
            f"column throughput: found {text!r} beside status ok; allowed: a number above 0, up to "
            f"{LARGEST_RATE:g} (a run without a result has another status, in a column `status`)"
        )
    return value
