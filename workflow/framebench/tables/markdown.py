"""Tables as Markdown, with a section per model and mode.

Scaling tables begin with pivots. Notes of a row become footnotes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from . import view
from .columns import STATUS, Row
from .formatting import MISSING, Cell, Footnotes, differing_conditions, escape
from .legend import explanations
from .table import Crosstab, Pivot, Table
from .view import TableView

#: Columns in the heading of a section.
_HEADING = ("model", "mode", "unit")


def render(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """Return the Markdown file of a table. ``origin``: origin of the figures."""
    seen = view.view_table(table, frame, narrow=False)
    notes = Footnotes()
    lines = [f"# {table.title}", "", table.explanation, "", *_about(seen, origin)]
    for paragraph in seen.lead:
        lines += [escape(paragraph), ""]
    if not seen.rows:
        lines += [table.empty, ""]
    elif seen.crosstabs:
        for crosstab in seen.crosstabs:
            lines += [*_crosstab(crosstab, notes), ""]
    elif table.sectioned:
        if table.pivot:
            lines += _pivots(table.pivot, seen.rows, notes)
        lines += _sections(seen, notes)
    else:
        lines += [*_rows(seen), ""]
    for text in [*seen.about, *notes.lines()]:
        lines += [text, ""]
    lines += [
        line for word, meaning in explanations([frame]) for line in (f"*{word}*: {meaning}", "")
    ]
    return "\n".join(lines).rstrip() + "\n"


def crosstabs(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """Return the crosstabs of a table as Markdown, for a page with its own headings."""
    seen = view.view_table(table, frame, narrow=False)
    notes = Footnotes()
    lines = _about(seen, origin)
    for crosstab in seen.crosstabs:
        lines += [*_crosstab(crosstab, notes, "###"), ""]
    for text in notes.lines():
        lines += [text, ""]
    return "\n".join(lines).rstrip() + "\n"


def _about(seen: TableView, origin: str) -> list[str]:
    """Return the origin of the figures, and what all rows share."""
    common = ", ".join(f"{title} {value}" for title, value in seen.shared)
    lines = [f"Measured: {escape(origin)}.", ""] if origin else []
    return lines + ([f"All rows: {escape(common)}.", ""] if common else [])


def _rows(seen: TableView) -> list[str]:
    """Return all columns in one table."""
    header = [field.title for field in seen.fields]
    names = [field.column.name for field in seen.fields]
    return grid(header, ([_text(cells[name]) for name in names] for cells in seen.cells))


def _crosstab(crosstab: Crosstab, notes: Footnotes, level: str = "##") -> Iterator[str]:
    """Yield the lines of a crosstab; reasons for missing figures become footnotes."""
    yield f"{level} {escape(crosstab.title)}"
    yield ""

    def text(cell: Cell | None) -> str:
        return "not run" if cell is None else _text(cell) + notes.mark(cell.why)

    rows = (
        [escape(name), *(text(cells[setting]) for setting in crosstab.settings)]
        for name, cells in crosstab.rows.items()
    )
    yield from grid([crosstab.down, *map(escape, crosstab.settings)], rows)


def _sections(seen: TableView, notes: Footnotes) -> Iterator[str]:
    """Yield a section per model, mode and unit; notes and status become footnotes."""
    fields = [
        field
        for field in seen.fields
        if field.column.name not in _HEADING
        and not field.column.note
        and field.column.form is not STATUS
    ]
    sections: dict[str, list[int]] = {}
    for number, values in enumerate(seen.rows):
        unit = f" ({values['unit']})" if "unit" in values else ""
        sections.setdefault(f"{values['model']}, {values['mode']}{unit}", []).append(number)
    header = [field.title for field in fields]
    figures = [field for field in fields if field.column.flagged]
    noted = [column.name for column in seen.table.columns if column.note]

    def row(number: int) -> list[str]:
        values = seen.rows[number]
        footnotes = "".join(notes.mark(values[name]) for name in noted)
        status = values.get("status", "ok")
        remark = (f" {status}" if status != "ok" else "") + footnotes
        missing = {field.column.name for field in figures if field.cells[number].is_missing}
        explained = missing or {field.column.name for field in figures[:1]}
        cells = []
        for field in fields:
            cell = field.cells[number]
            text = _text(cell) + notes.mark(cell.why)
            cells.append(text + remark if field.column.name in explained else text)
        return cells

    for heading, numbers in sorted(sections.items()):
        yield f"## {'Every case of ' * bool(seen.table.pivot)}{escape(heading)}"
        yield ""
        yield from grid(header, [row(number) for number in numbers])
        yield ""


def _text(cell: Cell) -> str:
    text = MISSING if cell.is_missing else escape(cell.text) or MISSING
    return text + "".join(f" *{flag}*" for flag in cell.flags.split()) if cell.flags else text


def _pivots(pivot: Pivot, rows: Sequence[Row], notes: Footnotes) -> Iterator[str]:
    """Yield tables in DLPerf's form, with nodes and devices down and frameworks across.

    There is one per precision and batch size. Each ratio has its throughput, because a slow single
    device makes ratios look good."""
    sources = {row["source"] for row in rows}
    conditions = differing_conditions(rows)

    def title(row: Row) -> str:
        batch = f"{pivot.heading}={row[pivot.batch]}"
        return f"{row['model']}, {row['mode']}, {row['precision']}, {batch} ({row['unit']})"

    def series(row: Row) -> str:
        parts = [row["framework"], row["framework_version"]]
        parts += [row["source"]] if len(sources) > 1 else []
        parts += [row["compiler"]] if row["compiler"] != "none" else []
        parts += [f"({text})"] if (text := conditions(row)) else []
        return escape(" ".join(word for word in parts if word))

    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(title(row), []).append(row)
    for heading, part in sorted(parts.items()):
        cells = {(series(row), row["nodes"], row["devices_per_node"]): row for row in part}
        columns = sorted({name for name, _, _ in cells})
        topologies = sorted({(nodes, devices) for _, nodes, devices in cells})
        if topologies == [(1, 1)]:
            continue  # nothing scales; the table of all cases has it
        yield f"## {escape(heading)}"
        yield ""
        yield from grid(
            ["node num", "device num", *columns],
            (
                [str(n), str(n * d), *(_pair(cells.get((c, n, d)), notes) for c in columns)]
                for n, d in topologies
            ),
        )
        yield ""


def _pair(row: Row | None, notes: Footnotes) -> str:
    if row is None:
        return "not run"
    mark = notes.mark(row["reason"])
    if row["throughput_median"] is None:
        return MISSING + mark
    ratio = MISSING if row["speedup"] is None else f"{row['speedup']:.2f}"
    flags = "".join(f" *{word}*" for word in row["flags"].split())
    return f"{row['throughput_median']:.2f} ({ratio}{mark}){flags}"


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a Markdown table. Cells must be escaped."""
    header = list(header)
    return [
        f"| {' | '.join(header)} |",
        f"|{'|'.join('---' for _ in header)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
