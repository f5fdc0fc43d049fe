"""All tables of a set of records, as data frames and as files: CSV and Markdown.

Modules in ``declared`` contribute their TABLES; each benchmark other than steps adds one.

CSV files have full precision. Missing numbers stay missing (NaN in a frame, an empty cell in CSV),
never zero; `reason` or `note` gives the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from textwrap import fill

import pandas as pd

from ..cases.conditions import CONDITIONS, KEYS
from ..config import catalog
from ..config.keys import read_mapping
from ..files.json_files import Problem
from ..records import device_peaks, verifications
from ..records.record_sets import RecordSet
from ..records.sidecars import load_expected
from ..records.verified import VerificationFlags
from . import declared, formatting, measured
from .columns import PRINTED, TOPOLOGY, TYPE_WORDS, Column, Row, declarations, shared
from .formatting import MISSING, Cell, escape
from .results import FIGURES, group
from .table import Inputs, Table, frame_rows

#: Explanation of each flag.
FLAGS: Mapping[str, str] = read_mapping(Path(__file__).with_name("flags.yaml"))


def inputs_of(record_set: RecordSet, source: Path) -> tuple[Inputs, Sequence[Problem]]:
    """Group and judge the records of ``source`` for tables.

    Includes the sidecar files next to the records, and also returns problems with these."""
    folder = source.parent
    verification_results, of_verifications = verifications.load(verifications.folder_for(source))
    reached, of_peaks = device_peaks.load(folder / device_peaks.KIND)
    asked, of_asked = load_expected(folder)
    models = catalog.project_catalog().models
    cases = group(record_set.runs, VerificationFlags(verification_results, models))
    inputs = Inputs(
        cases={key: result for key, result in cases.items() if key.case.is_step},
        verification_results=verification_results,
        peaks=device_peaks.PeakFlopsLookup(reached),
        searches=record_set.searches,
        models=models,
        others={key: result for key, result in cases.items() if not key.case.is_step},
        expected=[case for case in asked if not case.left_out],
        left_out=[case for case in asked if case.left_out],
    )
    return inputs, [*of_verifications, *of_peaks, *of_asked]


@cache
def known_tables() -> Mapping[str, Table]:
    """Return declared tables by name, in the order of tables.yaml; tables that it lacks follow."""
    modules = (module.name for module in iter_modules(declared.__path__, ".declared."))
    every = [table for name in modules for table in import_module(name, __package__).TABLES]
    found = {table.name: table for table in every}
    return {name: found[name] for name in dict.fromkeys((*declarations(), *found))}


def build(inputs: Inputs) -> dict[Table, pd.DataFrame]:
    """Return the tables that have rows or are always present, in the order of the page. Tables of
    benchmarks other than steps come last."""
    every = (*known_tables().values(), *measured.tables(inputs.others))
    built = {table: inputs.frame_of(table) for table in every}
    return {table: rows for table, rows in built.items() if table.always or len(rows)}


def files(tables: Mapping[Table, pd.DataFrame], folder: Path, origin: str = "") -> dict[Path, str]:
    """Return NAME.csv and NAME.md of each table in ``folder`` as text by path.

    ``origin``: origin of the figures, for readers."""
    texts = {}
    for table, rows in tables.items():
        texts[folder / f"{table.name}.csv"] = csv_text(rows)
        texts[folder / f"{table.name}.md"] = markdown(table, rows, origin)
    return texts


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV (RFC 4180) with full precision and line feeds."""
    return str(table.to_csv(index=False, lineterminator="\n", na_rep=""))


# ---- what readers see ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A formatted column."""

    column: Column
    cells: Sequence[Cell]

    @property
    def kind(self) -> str:
        """``number`` for right-aligned cells sorted by value, ``note`` for long texts, or ""."""
        if self.column.is_number or self.column.form is PRINTED:
            return "number"
        return "note" if any(cell.kind == "note long" for cell in self.cells) else ""


@dataclass(frozen=True)
class TableView:
    """A formatted table.

    ``fields``: in the order of the columns. ``shared``: title and value pairs that hold for every
    row. ``rows``: values of the rows."""

    table: Table
    fields: Sequence[Field]
    shared: Sequence[tuple[str, str]]
    lead: Sequence[str]
    rows: Sequence[Row]


def view_table(table: Table, frame: pd.DataFrame) -> TableView:
    """Return the formatted table. Values of the case that all rows share move to the caption."""
    columns: Sequence[Column] = table.columns
    rows: Sequence[Row] = frame_rows(frame)
    lead = list(table.lead(rows)) if table.lead else []
    if table.overview and rows:
        columns, rows = table.overview(rows)
    shown = [column for column in columns if _is_shown(column, rows)]
    shared = {
        column.name: text
        for column in shown
        if not table.crosstab and (text := _shared(table, column, rows))
    }
    caption = [(column.header, shared[column.name]) for column in shown if column.name in shared]
    fields = [
        Field(column, formatting.cells(column, rows))
        for column in shown
        if column.name not in shared
    ]
    return TableView(table, fields, caption, lead, rows)


def _is_shown(column: Column, rows: Sequence[Row]) -> bool:
    """Return whether readers see a column: of texts, if any is not blank; of numbers, even if all
    are missing, unless it is optional, because the cells say why they are missing."""
    if column.hidden:
        return False
    values = {row[column.name] for row in rows}
    if column.is_number:
        return not column.optional or values != {None}
    return any(formatting.cell_text(column, value) for value in values)


def _shared(table: Table, column: Column, rows: Sequence[Row]) -> str:
    """Return the text that all rows share in a column of texts or of the case; "" if they differ.
    With a single row, only conditions count as shared."""
    is_of_case = column.name in KEYS and column.form is not TOPOLOGY
    is_text = not column.is_number and column.form is not PRINTED
    if column.name in table.answering or not (is_of_case or is_text):
        return ""
    if len(rows) < 2 and column.name not in CONDITIONS:
        return ""
    texts = {formatting.cell_text(column, value) for value in {row[column.name] for row in rows}}
    return texts.pop() if len(texts) == 1 else ""


def explanations(tables: Iterable[pd.DataFrame]) -> list[tuple[str, str]]:
    """Return (flag, explanation) for each flag that occurs in the tables."""
    words = set()
    for table in tables:
        flags = table["flags"].unique() if "flags" in table else ()
        words |= {word for cell in flags for word in str(cell).split()}
    return [(word, meaning) for word, meaning in FLAGS.items() if word in words]


# ---- Markdown -----------------------------------------------------------------------------------


def markdown(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """Return the Markdown file of a table. ``origin``: origin of the figures."""
    seen = view_table(table, frame)
    lines = [f"# {table.title}", "", table.explanation, ""]
    if origin:
        lines += [f"Measured: {escape(origin)}.", ""]
    if seen.shared:
        common = ", ".join(f"{title} {value}" for title, value in seen.shared)
        lines += [f"All rows: {escape(common)}.", ""]
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


def _text(cell: Cell) -> str:
    """Return a cell with its flags, or why it is missing."""
    if cell.kind.endswith("missing"):
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


def columns_page(tables: Sequence[Table]) -> str:
    """Return docs/columns.md: shared columns, each table's own columns, and further figures."""
    count = Counter(name for table in tables for name in table.names)
    several = {column.name: column for table in tables for column in table.columns
               if count[column.name] > 1}  # fmt: skip
    lines = [
        "# Columns of the tables",
        "",
        "Content of `results/tables/*.csv`. A missing number is an empty cell, and `reason` or",
        "`note` says why. `published.csv` holds case and conditions as they are printed.",
        "This page is generated: `.venv/bin/framebench columns > docs/columns.md`.",
        "",
        "## Columns of several tables",
        "",
        *_columns(several.values()),
    ]
    for table in tables:
        own = [column for column in table.columns if column.name not in several]
        if own:
            lines += ["", f"## {table.name}", "", fill(table.explanation, 100), "", *_columns(own)]
    figures = [column for column in shared(*FIGURES) if not count[column.name]]
    lines += ["", "## Figures of other benchmarks", "", *_columns(figures)]
    return "\n".join(lines) + "\n"


def _columns(some: Iterable[Column]) -> list[str]:
    return grid(
        ("column", "type", "unit", "meaning"),
        [(one.name, TYPE_WORDS[one.type], one.unit, one.explanation) for one in some],
    )
