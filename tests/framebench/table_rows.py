"""Access to rows of tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd


def only(table: pd.DataFrame) -> dict[str, Any]:
    """Return the only row of a table."""
    assert len(table) == 1, table
    return {str(name): value for name, value in table.iloc[0].items()}


def row(table: pd.DataFrame, **keys: Any) -> dict[str, Any]:
    for key, value in keys.items():
        table = table[table[key] == value]
    return only(table)


def rows_of(folder: Path, table: str, **cells: str) -> list[dict[str, str]]:
    """Return the rows of a CSV with these cells."""
    with open(folder / "tables" / f"{table}.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if cells.items() <= row.items()]
