"""Failed cases for the report, by status, with reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..cases.names import batch_of, topology_of
from ..config.statuses import FOR_PEOPLE
from ..records.record_sets import load_record
from ..records.run import RecordsError, Run
from .record_links import Link, numbered

MAX_FAILURES = 300
MAX_TRACEBACKS = 10


@dataclass(frozen=True)
class FailedCase:
    """Repeats of one case that failed with the same status and reason."""

    case: str
    framework: str
    status: str
    reason: str
    count: int
    links: Sequence[Link]
    traceback: str


def by_status(
    runs: pd.DataFrame, link: Callable[[Run, str], Link]
) -> tuple[dict[str, list[FailedCase]], dict[str, int]]:
    """Return the failed cases of each status, and the number left out per status.

    ``runs``: see :func:`..tables.case_frame.run_frame`."""
    failed = runs[runs["status"] != "ok"]
    found: dict[str, list[FailedCase]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    read = 0
    for _, repeats in failed.groupby(["status", "reason", "keys"], sort=False)["run"]:
        run, case = repeats.iloc[0], repeats.iloc[0].case
        if len(found[run.status]) >= MAX_FAILURES:
            left_out[run.status] += 1
            continue
        traceback = ""
        if run.status == "failed" and run.record is not None and read < MAX_TRACEBACKS:
            traceback = _traceback(run.record)
            read += 1
        found[run.status].append(
            FailedCase(
                case=", ".join(
                    part
                    for part in (
                        case.model, case.mode, topology_of(case), batch_of(case, "batch "),
                        case.precision, "" if case.compiler == "none" else case.compiler,
                    )
                    if part
                ),
                framework=f"{case.framework} {case.framework_version}".strip(),
                status=run.status,
                reason=run.reason,
                count=len(repeats),
                links=numbered([*repeats], link),
                traceback=traceback,
            )
        )  # fmt: skip
    return {status: found[status] for status in ordered(found) if found[status]}, dict(left_out)


def ordered(statuses: Iterable[str]) -> list[str]:
    """Return statuses in the order of the report."""
    return sorted(statuses, key=FOR_PEOPLE.index)


def _traceback(path: Path) -> str:
    try:
        ranks = load_record(path)["ranks"]
    except RecordsError:
        return ""
    return next((rank["traceback"] for rank in ranks if rank.get("traceback")), "")
