"""Sidecar CSV files that grow by appended rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from core import bounded
from core.text import printable

from ...files.text import from_cell, no_formula
from ..run import Problem, cause


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def append(path: Path, fields: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Append rows to the file, after a header if it is new. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(fields)
        writer.writerows([no_formula(cell) for cell in row] for row in rows)


def read(path: Path, fields: Sequence[str]) -> tuple[list[list[str]], list[Problem]]:
    """Return all rows below the header, and invalid lines; both empty without a file."""
    noted: list[list[str]] = []
    problems: list[Problem] = []
    try:
        text = bounded.read_bytes(path).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return [], []
    except (OSError, ValueError) as error:
        return [], [Problem(path.name, cause(error))]
    reader = csv.reader(io.StringIO(printable(text), newline=""))
    try:
        for row in reader:
            if len(row) == len(fields):
                noted.append([from_cell(cell) for cell in row])
            elif row:
                message = f"found {len(row)} cells; allowed: {len(fields)}"
                problems.append(Problem(f"{path.name}:{reader.line_num}", message))
    except csv.Error as error:
        problems.append(Problem(f"{path.name}:{reader.line_num}", cause(error)))
    return [row for row in noted if row != list(fields)], problems
