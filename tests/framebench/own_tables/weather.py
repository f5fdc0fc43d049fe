"""Table of a module outside the project."""

from __future__ import annotations

from framebench.tables.columns import COUNT, GROUPS, Column, shared
from framebench.tables.table import Table

WARMTH = Column("warmth", COUNT, "how warm it was", "K", title="warmth K", flagged=True)
TABLES = (
    Table(
        name="weather",
        title="Weather of every case",
        explanation="Nobody asked.",
        columns=(*shared(*GROUPS["case"]), WARMTH, *shared("flags")),
        rows=lambda inputs: ({**key.row, "warmth": 293, "flags": ""} for key in inputs.cases),
        group="Outside",
        drawing="throughput",
        always=True,
    ),
)
