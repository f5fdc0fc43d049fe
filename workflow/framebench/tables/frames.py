"""All tables of a set of records, as data frames and as files: CSV and Markdown.

Modules in ``declared`` contribute their TABLES; each benchmark other than steps adds one.

CSV files have full precision. Missing numbers stay missing (NaN in a frame, an empty cell in CSV),
never zero; `reason` or `note` gives the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pandas as pd

from ..files.whole_files import write_together
from . import declared, measured, view
from .columns import declarations
from .formatting import MISSING, Cell, escape
from .legend import explanations
from .table import Inputs, Table
from .view import TableView


@cache
def known_tables() -> Mapping[str, Table]:
    """Return declared tables by name, in the order of tables.yaml. Tables from elsewhere follow."""
    modules = (module.name for module in iter_modules(declared.__path__, ".declared."))
    every = [table for name in modules for table in import_module(name, __package__).TABLES]
    found = {table.name: table for table in every}
    return {name: found[name] for name in dict.fromkeys((*declarations(), *found))}


def tables_of(inputs: Inputs) -> list[Table]:
    """Return the declared tables and those of the other benchmarks present."""
    return [*known_tables().values(), *measured.tables(inputs.others)]


def build(inputs: Inputs) -> dict[Table, pd.DataFrame]:
    """Return all tables in page order: those always present, and others that have rows."""
    built = {table: inputs.frame_of(table) for table in tables_of(inputs)}
    return {table: rows for table, rows in built.items() if table.always or len(rows)}


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
        texts[folder / f"{table.name}.md"] = markdown(table, rows, origin)
    return texts


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV (RFC 4180) with full precision and line feeds."""
    return str(table.to_csv(index=False, lineterminator="\n", na_rep=""))


# ---- Markdown -----------------------------------------------------------------------------------


def markdown(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """Return the Markdown file of a table. ``origin``: origin of the figures."""
    seen = view.view_table(table, frame)
    lines = [f"# {table.title}", "", table.explanation, "", *_about(seen, origin)]
    for paragraph in seen.lead:
        lines += [escape(paragraph), ""]
    if not seen.rows:
        lines += [table.empty, ""]
    else:
        header = [escape(field.column.header) for field in seen.fields]
        rows = zip(*(map(_text, field.cells) for field in seen.fields), strict=True)
        lines += [*grid(header, rows), ""]
    for word, meaning in explanations([frame]):
        lines += [f"*{word}*: {meaning}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _about(seen: TableView, origin: str) -> list[str]:
    """Return the origin of the figures, and what all rows share."""
    common = ", ".join(f"{title} {value}" for title, value in seen.shared)
    lines = [f"Measured: {escape(origin)}.", ""] if origin else []
    return lines + ([f"All rows: {escape(common)}.", ""] if common else [])


def _text(cell: Cell) -> str:
    """Return a cell with its flags, or why it is missing."""
    if cell.is_missing:
        return f"{MISSING} ({escape(cell.why)})" if cell.why else MISSING
    return (escape(cell.text) or MISSING) + "".join(f" *{flag}*" for flag in cell.flags.split())


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a Markdown table. Cells must be escaped."""
    header = list(header)
    return [
        f"| {' | '.join(header)} |",
        f"|{'|'.join('---' for _ in header)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
