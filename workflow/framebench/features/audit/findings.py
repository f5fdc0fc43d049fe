"""Findings of a check: rows of ``tables/lint.csv``, and text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd

from ...tables import formatting, frames
from ...tables.columns import COLUMNS, PRINTED, TEXT, Column, shared
from ...tables.table import Table


@dataclass(frozen=True)
class Finding:
    """A printed figure that contradicts others, or that lacks a figure it depends on.
    ``source`` names the folder, ``row`` the place in its ``table``. ``printed`` is the text as it
    stands there; ``recomputed`` follows from the other figures, with a digit more than printed."""

    source: str
    table: str
    row: str
    check: str
    printed: str
    recomputed: str
    note: str


@dataclass(frozen=True)
class Linted:
    """A checked source: the number and kind of its rows, and the findings.
    ``ours``: it holds results of this project rather than published figures."""

    source: str
    ours: bool
    rows: int
    kind: str
    findings: tuple[Finding, ...]


#: Table of the fields of a finding.
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
    """Return a row of text for every finding."""
    return frames.frame(
        TABLE, (asdict(finding) for source in sources for finding in source.findings)
    )


def summary_text(sources: Sequence[Linted]) -> str:
    """Return a line for every finding, under its source with the number of rows checked."""
    lines = []
    for source in sources:
        count = len(source.findings)
        found = formatting.counted(count, "finding")
        lines.append(f"{source.source}: {source.rows} {source.kind} checked, {found}")
        for finding in source.findings:
            figures = f"{finding.printed} printed" if finding.printed else "nothing printed"
            figures += f", {finding.recomputed} recomputed" if finding.recomputed else ""
            lines.append(
                f"  {finding.check}: {finding.table}, {finding.row}: {figures}: {finding.note}"
            )
    return "\n".join(lines)
