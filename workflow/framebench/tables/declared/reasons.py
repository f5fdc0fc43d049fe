"""Table of runs without a figure, counted by status and reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ...config.statuses import FOR_PEOPLE
from ...records.run import Run
from ..columns import Row
from ..measured import runs_in
from ..table import Inputs, declared_table


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per status and reason, most frequent reasons first within a status."""
    failed: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in inputs.runs:
        if run.status != "ok":
            failed[run.status, run.reason].append(run)
    for (status, reason), runs in sorted(
        sorted(failed.items()), key=lambda pair: (FOR_PEOPLE.index(pair[0][0]), -len(pair[1]))
    ):
        yield {
            "status": status,
            "failed_runs": len(runs),
            "failed_cases": len({run.keys for run in runs}),
            "failed_in": ", ".join(sorted({runs_in(run.case) for run in runs})),
            "reason": reason,
        }


FAILURES = declared_table("failures", rows)
TABLES = (FAILURES,)
