"""Access to rows of tables."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pandas as pd


def only(table: pd.DataFrame) -> dict[str, Any]:
    assert len(table) == 1, table
    return {str(name): value for name, value in table.iloc[0].items()}


def row(table: pd.DataFrame, **keys: Any) -> dict[str, Any]:
    for key, value in keys.items():
        table = table[table[key] == value]
    return only(table)


def shown(text: str) -> list[dict[str, str]]:
    """Return the rows of all tables in a Markdown file, cells by heading."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rows, heading = [], [""]
    for line, below in zip(cells, [*cells[1:], [""]], strict=True):
        if below[0] == "---":
            heading = line
        elif line[0] != "---":
            rows.append(dict(zip(heading, line, strict=True)))
    return rows


def rows_of(folder: Path, table: str, **cells: str) -> list[dict[str, str]]:
    """Return the rows of a CSV with these cells."""
    with open(folder / "tables" / f"{table}.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if cells.items() <= row.items()]
