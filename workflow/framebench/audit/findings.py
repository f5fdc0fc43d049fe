"""Findings of a check: rows of ``tables/lint.csv``, and text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd

from ..tables import frames
from ..tables.columns import COLUMNS, PRINTED, TEXT, Column, shared
from ..tables.table import Table


@dataclass(frozen=True)
class Finding:
    """A figure that contradicts others, or what it needs and does not have.

    ``source`` names the folder, ``row`` the place in its ``table``. ``printed`` is the text as it
    stands there; ``recomputed`` is what the other figures give, with a digit more than printed."""

    source: str
    table: str
    row: str
    check: str
    printed: str
    recomputed: str
    note: str


@dataclass(frozen=True)
class Linted:
    """A source that was checked: how many of its rows and of which kind, and what was found.
    ``ours`` where it holds results of this project rather than figures of others."""

    source: str
    ours: bool
    rows: int
    kind: str
    findings: tuple[Finding, ...]


#: Of the fields of a finding.
TABLE = Table(
    name="lint",
    title="Figures that contradict others",
    explanation="A figure is wrong where no number that would be printed so follows from the "
    "others.",
    columns=(
        Column("source", TEXT, "the folder that was checked", hoisted=True),
        Column("table", TEXT, "the table that a figure is printed in"),
        Column("row", TEXT, "where a finding is"),
        Column("check", TEXT, "what was checked"),
        Column("printed", TEXT, "the figure as it is printed", form=PRINTED),
        replace(COLUMNS["recomputed"], type=TEXT, form=PRINTED),
        *shared("note"),
    ),
    empty="Nothing was found.",
)


def frame(sources: Sequence[Linted]) -> pd.DataFrame:
    """A row for every finding, all text."""
    return frames.frame(TABLE, (asdict(one) for source in sources for one in source.findings))


def summary_text(sources: Sequence[Linted]) -> str:
    """A line for every finding, under its source with the number of rows checked."""
    lines = []
    for source in sources:
        count = len(source.findings)
        found = f"{count} finding{'s' if count != 1 else ''}"
        lines.append(f"{source.source}: {source.rows} {source.kind} checked, {found}")
        for one in source.findings:
            figures = f"{one.printed} printed" if one.printed else "nothing printed"
            figures += f", {one.recomputed} recomputed" if one.recomputed else ""
            lines.append(f"  {one.check}: {one.table}, {one.row}: {figures}: {one.note}")
    return "\n".join(lines)
