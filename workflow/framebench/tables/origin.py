"""Origin of figures: machine, time, duration and commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from core.text import duration

from ..machine.identities import UNKNOWN
from ..records.run import Run
from ..records.sidecars import CallEntry


@dataclass(frozen=True)
class Origin:
    """Origin of a set of runs.

    ``machines``, ``commits``, ``suites``: without duplicates. ``first``, ``last``: days in UTC, ""
    if unknown. ``seconds``: total wall time of the runs. ``command``: last call that measured."""

    machines: Sequence[str]
    first: str
    last: str
    seconds: float
    commits: Sequence[str]
    suites: Sequence[str]
    command: str

    @property
    def days(self) -> str:
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def took(self) -> str:
        """Total wall time as text; "" if unknown."""
        return duration(self.seconds) if self.seconds else ""

    @property
    def caption(self) -> str:
        """Machine, days and commit on one line, as far as known."""
        several = len(self.machines) > 1
        machine = f"{len(self.machines)} machines" if several else "".join(self.machines)
        commit = f"commit {', '.join(self.commits)}" if self.commits else ""
        return ", ".join(filter(None, (machine, self.days, commit)))


def describe_origin(runs: Sequence[Run], called: Sequence[CallEntry] = ()) -> Origin:
    """Return the origin of ``runs``. ``called``: known calls that measured."""
    days = sorted(
        datetime.fromtimestamp(run.started, UTC).date().isoformat()
        for run in runs
        if run.started is not None
    )
    machines = {run.machine for run in runs if run.hardware} - {UNKNOWN}
    return Origin(
        sorted({machine.in_short for machine in machines}),
        days[0] if days else "",
        days[-1] if days else "",
        sum(run.wall_seconds or 0.0 for run in runs),
        sorted({run.commit for run in runs} - {""}),
        list(dict.fromkeys(call.suite for call in called)),
        called[-1].command if called else "",
    )


def span(runs: Sequence[Run]) -> tuple[float, float]:
    """Return start of the first and end of the last run, in seconds since the epoch.

    Both are 0 if no run has a start."""
    present = [(run.started, run.wall_seconds or 0.0) for run in runs if run.started is not None]
    if not present:
        return 0.0, 0.0
    return min(start for start, _ in present), max(start + took for start, took in present)
