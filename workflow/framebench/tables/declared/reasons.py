"""Table of runs without a figure, counted by status and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.statuses import FOR_PEOPLE
from ..columns import TEXT, WHOLE, Column, shared
from ..measured import NO_FRAMEWORK
from ..table import Inputs, Table

if TYPE_CHECKING:
    import pandas as pd


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per status and reason, most frequent reasons first within a status."""
    failed = inputs.runs[inputs.runs["status"] != "ok"]
    counted = failed.groupby(["status", "reason"], as_index=False).agg(
        failed_runs=("run", "size"),
        failed_cases=("keys", "nunique"),
        failed_in=("framework", lambda some: ", ".join(sorted({*some.replace("", NO_FRAMEWORK)}))),
    )
    counted = counted.sort_values("failed_runs", ascending=False, kind="stable")
    return counted.sort_values("status", key=lambda some: some.map(FOR_PEOPLE.index), kind="stable")


FAILURES = Table(
    name="failures",
    title="Failures",
    explanation="Runs that have no figure, by how they ended and why, in their own words. "
    "The table summary has the reason of each case, and its records have the ends of their logs.",
    columns=(
        *shared("status"),
        Column("failed_runs", WHOLE, "runs that ended so", title="runs"),
        Column("failed_cases", WHOLE, "cases that they are repeats of", title="cases"),
        Column("failed_in", TEXT, "frameworks that they ran in", title="frameworks"),
        *shared("reason"),
    ),
    rows=rows,
    group="Answers",
    empty="Every run ended well.",
    always=True,
    keys=("status", "reason"),
    answers=("failed_runs", "status", "failed_in", "reason"),
    axes=(),
)
TABLES = (FAILURES,)
