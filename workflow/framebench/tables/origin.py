"""Origin of figures (machine, time, duration, commit), and how much of a suite they cover."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from core.text import duration

from ..machine.identities import UNKNOWN
from ..records.run import Run
from ..records.sidecars import CallEntry
from .measured import runs_in
from .table import Inputs


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


def coverage(inputs: Inputs) -> list[str]:
    """Return a sentence for each suite with unmeasured cases, and the frameworks that have some."""
    results = chain(inputs.cases.values(), inputs.others.values())
    measured = {os.path.dirname(run.origin) for result in results for run in result.runs}
    lines = []
    for suite in dict.fromkeys(case.suite for case in inputs.expected):
        cases = [case for case in inputs.expected if case.suite == suite]
        missing = [case.case for case in cases if case.folder not in measured]
        if missing:
            every = Counter(runs_in(case.case) for case in cases)
            lacking = Counter(map(runs_in, missing))
            names = (f"{name} ({lacking[name]} of {every[name]})" for name in sorted(lacking))
            found = f"{len(cases) - len(missing)} of {len(cases)} cases of suite {suite} measured"
            lines.append(f"{found}; not yet: {', '.join(names)}")
    return lines
