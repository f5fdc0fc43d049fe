"""How far the runs of a plan have come."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from .planning import Plan, PlannedRun, duration, remaining


class Progress:
    """Formats to ``[started/all] what runs now, time left`` when Snakemake starts a job.

    Used in a rule's message as ``{progress:NAME}``; NAME is a planned run's name. A dry run
    (``measures`` false) starts jobs that never finish.
    """

    def __init__(self, plan: Plan, measures: bool = True) -> None:
        self._runs = {run.name: run for run in (*plan.pending, *plan.reserve)}
        self._asked = len(plan.pending)
        self._folder = plan.settings.results / "runs"
        self._measures = measures
        self._left = self._all = sum(run.seconds for run in plan.pending)
        # Runs side by side take less than the sum of their times.
        self._pace = remaining(plan) / self._all if self._all else 1.0
        self._finished = 0
        self._positions: dict[str, int] = {}
        # Only what has been started can have finished: nobody asks the file system about the rest.
        self._unfinished: set[str] = set()
        self._started: float | None = None

    def add(self, runs: Iterable[PlannedRun], reserve: Iterable[PlannedRun]) -> None:
        """Runs that the plan did not have when it was made, and their further repeats."""
        for run in runs:
            self._runs[run.name] = run
            self._asked += 1
            self._left += run.seconds
            self._all += run.seconds
        self._runs |= {run.name: run for run in reserve}

    def __format__(self, name: str) -> str:
        now = time.monotonic()
        self._started = self._started or now
        if self._measures:
            self._note_finished()
            self._unfinished.add(name)
        left, expected = self._left, self._all - self._left
        measured = self._finished >= 3 and expected > 0
        left *= (now - self._started) / expected if measured else self._pace
        position = self._positions.setdefault(name, len(self._positions) + 1)
        run = self._runs[name]
        what = f"{run.case} repeat {run.repeat}"
        if position > self._asked:
            return f"[{position}] {what} (its interval is too wide)"
        return f"[{position}/{self._asked}] {what} (about {duration(left)} left)"

    def _note_finished(self) -> None:
        done = {name for name in self._unfinished if os.path.exists(f"{self._folder}/{name}.json")}
        self._unfinished -= done
        self._finished += len(done)
        self._left -= sum(self._runs[name].seconds for name in done)
