"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from . import view
from .formatting import MISSING, Cell, escape
from .legend import explanations
from .table import Table
from .view import TableView


def render(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """Return the Markdown file of a table. ``origin``: origin of the figures."""
    seen = view.view_table(table, frame)
    lines = [f"# {table.title}", "", table.explanation, "", *_about(seen, origin)]
    for paragraph in seen.lead:
        lines += [escape(paragraph), ""]
    if not seen.rows:
        lines += [table.empty, ""]
    else:
        header = [escape(field.title) for field in seen.fields]
        rows = zip(*(map(_text, field.cells) for field in seen.fields), strict=True)
        lines += [*grid(header, rows), ""]
    for text in seen.about:
        lines += [text, ""]
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
