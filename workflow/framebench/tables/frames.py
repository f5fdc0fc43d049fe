"""Tables as data frames and as files.

Nothing is rounded. Missing numbers stay missing (NaN in a frame, an empty cell in CSV), never zero;
`reason` or `note` gives the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from ..files.text import no_formula
from ..files.whole_files import write_together
from . import case_frame, markdown, registry
from .columns import Row
from .table import Inputs, Table


def build(inputs: Inputs) -> dict[Table, pd.DataFrame]:
    """Return all tables in page order: those always present, and others that have rows."""
    built = {table: inputs.made(table) for table in registry.tables_of(inputs)}
    return {table: rows for table, rows in built.items() if table.always or len(rows)}


def frame(table: Table, rows: pd.DataFrame | Iterable[Row]) -> pd.DataFrame:
    """Return a data frame with the columns of ``table``; see :func:`case_frame.typed`."""
    return case_frame.typed(table.name, table.columns, rows)


def write(tables: Mapping[Table, pd.DataFrame], folder: Path) -> None:
    """Write NAME.csv and NAME.md of each table to `folder`.

    All files are written or none. Raises OSError if writing fails."""
    write_together(files(tables, folder))


def files(tables: Mapping[Table, pd.DataFrame], folder: Path, origin: str = "") -> dict[Path, str]:
    """Return the files of :func:`write` as text by path.

    ``origin``: origin of the figures, for readers."""
    texts = {}
    for table, rows in tables.items():
        texts[folder / f"{table.name}.csv"] = csv_text(rows)
        texts[folder / f"{table.name}.md"] = markdown.render(table, rows, origin)
    return texts


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV (RFC 4180) with full precision, line feeds and no formulas."""
    texts = {
        str(name): column.map(_cell)
        for name, column in table.items()
        if not is_numeric_dtype(column)
    }
    return str(table.assign(**texts).to_csv(index=False, lineterminator="\n", na_rep=""))


@lru_cache(maxsize=4096, typed=True)  # cells repeat each other
def _cell(value: Any) -> Any:
    return no_formula(value) if isinstance(value, str) else value
