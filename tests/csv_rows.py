"""Rows of CSV files."""

from __future__ import annotations

import csv
from pathlib import Path


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as texts by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
