"""Tables as data frames and as files.

Nothing is rounded here; a missing number is missing (NaN in the frame, an empty cell in the
CSV), never zero, and `reason` or `note` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from ..files.text import no_formula
from ..files.whole_files import write_together
from . import latex, markdown, registry
from .columns import Row
from .declared import coverage
from .table import Inputs, Table


def build(inputs: Inputs) -> dict[Table, pd.DataFrame]:
    """All tables in the order of the page: those that are always there, and others that have a
    row."""
    built = {table: frame(table, table.rows(inputs)) for table in registry.tables_of(inputs)}
    return {table: rows for table, rows in built.items() if table.always or len(rows)}


def frame(table: Table, rows: Iterable[Row]) -> pd.DataFrame:
    """Return the columns of ``table`` in their declared types, whether there are rows or not.

    Raises ValueError for a row that has other columns than the table."""
    listed = list(rows)
    for row in listed:
        if row.keys() != table.by_name.keys():
            differing = ", ".join(sorted(row.keys() ^ table.by_name.keys()))
            raise ValueError(
                f"table {table.name}: its columns and those of a row differ: {differing}"
            )
    return pd.DataFrame(
        {
            column.name: pd.Series([row[column.name] for row in listed], dtype=column.type)
            for column in table.columns
        }
    )


def write(tables: Mapping[Table, pd.DataFrame], folder: Path) -> None:
    """NAME.csv and NAME.md for each table in `folder`, NAME.tex of crosstabs.

    All are written or none. Raises OSError for a target that cannot be written.
    """
    write_together(files(tables, folder))


def files(tables: Mapping[Table, pd.DataFrame], folder: Path, origin: str = "") -> dict[Path, str]:
    """What :func:`write` writes. ``origin``: what the figures are from, for people."""
    texts = {}
    covered = ". ".join(filter(None, (origin, *coverage.sentences(coverage.rows_of(tables)))))
    for table, rows in tables.items():
        about = covered if table.group == coverage.COVERAGE.group else origin
        texts[folder / f"{table.name}.csv"] = csv_text(rows)
        texts[folder / f"{table.name}.md"] = markdown.render(table, rows, about)
        if table.crosstabs:
            texts[folder / f"{table.name}.tex"] = latex.render(table, rows, about)
    return texts


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV: RFC 4180, full precision, line feeds, and no text that is a formula."""
    texts = {
        str(name): column.map(_cell)
        for name, column in table.items()
        if not is_numeric_dtype(column)
    }
    return str(table.assign(**texts).to_csv(index=False, lineterminator="\n", na_rep=""))


def _cell(value: Any) -> Any:
    return no_formula(value) if isinstance(value, str) else value
