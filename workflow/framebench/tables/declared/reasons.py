"""Table of runs without a figure, counted by status and reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from ...config.statuses import FOR_PEOPLE
from ...records.run import Run
from ..columns import TEXT, WHOLE, Column, Row, shared
from ..measured import runs_in
from ..table import Inputs, Table


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per status and reason, most frequent reasons first within a status."""
    grouped: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for key, result in chain(inputs.cases.items(), inputs.others.items()):
        for run in result.runs:
            if run.status != "ok" and key == run.key:  # once per run, not once per metric
                grouped[run.status, run.reason].append(run)
    for status, reason in sorted(
        grouped, key=lambda group: (FOR_PEOPLE.index(group[0]), -len(grouped[group]), group)
    ):
        runs = grouped[status, reason]
        frameworks = sorted({runs_in(run.case) for run in runs})
        yield {
            "status": status,
            "failed_runs": len(runs),
            "failed_cases": len({run.key for run in runs}),
            "failed_in": ", ".join(frameworks),
            "reason": reason,
        }


FAILURES = Table(
    name="failures",
    title="Failures by reason",
    explanation="Runs that have no figure, by how they ended and why, in their own words. All "
    "cases of each, with the ends of their logs, stand under Failures.",
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
