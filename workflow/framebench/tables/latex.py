"""Crosstabs as LaTeX with booktabs rules, for papers to include with ``\\input``.

Each crosstab is a table with its title as caption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from . import view
from .formatting import MISSING, Cell, Footnotes
from .table import Crosstab, Table

PACKAGES = r"% needs \usepackage{booktabs}"
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    # LaTeX would read these as arguments after the end of a line.
    "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip


def render(table: Table, frame: pd.DataFrame, origin: str = "") -> str:
    """Return the file of a table's crosstabs. ``origin``: origin of the figures."""
    seen = view.view_table(table, frame, narrow=False)
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
    ]  # computed first, because it fills the notes
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
        + "".join(f" {flag}" for flag in cell.flags.split())
        + notes.mark(cell.why)
    )


def grid(
    environment: str, columns: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """Return a LaTeX table with its header. ``columns``: l, r or c each. Cells are plain text."""
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
    """Return ``text`` with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)
