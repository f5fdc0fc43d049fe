"""Crosstabs as LaTeX, with the rules of booktabs: each a table of its own with its title as
caption, for a paper to take in with ``\\input``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from . import view
from .cells import Cell
from .markdown_cells import MISSING, Footnotes
from .table import Crosstab, Table

PACKAGES = r"% needs \usepackage{booktabs}"
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    # Behind the end of a line these would be its arguments.
    "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip


def render(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """The whole file. ``origin``: what its figures are from."""
    seen = view.of(table, frame, narrow=False)
    facts = [f"{title} {value}" for title, value in seen.shared]
    about = ". ".join(filter(None, [origin, ", ".join(facts)]))
    lines = [PACKAGES]
    for crosstab in seen.crosstabs:
        lines += _crosstab(crosstab, table.title, about)
    return "\n".join([*lines, ""])


def _crosstab(crosstab: Crosstab, title: str, about: str) -> Iterator[str]:
    notes = Footnotes()
    body = [
        [name, *(_text(cells[setting], notes) for setting in crosstab.settings)]
        for name, cells in crosstab.rows.items()
    ]  # before the notes, which it finds
    caption = f"{title}: {crosstab.title}. {about}".rstrip(". ") + "."
    yield r"\begin{table}"
    yield rf"\caption{{{escaped(caption)}}}"
    yield r"\centering"
    yield from grid("tabular", "l" + "r" * len(crosstab.settings),
                    [crosstab.down, *crosstab.settings], body)  # fmt: skip
    for number, text in notes.numbered():
        yield rf"\par\footnotesize [{number}] {escaped(text)}"
    yield r"\end{table}"


def _text(cell: Cell | None, notes: Footnotes) -> str:
    if cell is None:
        return "not run"
    return (
        (cell.text or MISSING)
        + "".join(f" {mark}" for mark in cell.marks.split())
        + notes.mark(cell.why)
    )


def grid(
    environment: str, columns: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """A table with its header; ``columns``: l, r or c of each. Cells are plain text."""
    return [
        rf"\begin{{{environment}}}{{{columns}}}",
        r"\toprule",
        _line(header),
        r"\midrule",
        *([r"\endhead"] if environment == "longtable" else []),
        *map(_line, rows),
        r"\bottomrule",
        rf"\end{{{environment}}}",
    ]


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def escaped(text: str) -> str:
    """``text`` as LaTeX sets it."""
    return "".join(_SPECIAL.get(character, character) for character in text)
