"""Forecast of the time left: expected seconds of each job that has not ended."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable

from core.text import duration

from .jobs import Job

DAY = 86400.0


class Forecast:
    """Time left for ``jobs``, of which ``at_once`` run concurrently.

    A job is expected to take the median of its case in this call, else its estimate.
    """

    def __init__(self, jobs: Iterable[Job], at_once: float = 1.0) -> None:
        self._left: dict[str, Job] = {}
        self._running: dict[str, float] = {}
        self._at_once = at_once
        self._cases: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add new jobs."""
        self._left.update((job.name, job) for job in jobs)

    def start(self, name: str, now: float) -> None:
        """Note that a job begins ``now``, in seconds since the start of the call."""
        if name in self._left:
            self._running[name] = now

    def finish(self, name: str, seconds: float) -> None:
        """Note that a job ended after so many ``seconds``; unknown jobs are ignored."""
        job = self._left.pop(name, None)
        self._running.pop(name, None)
        if job:
            self._cases[job.kind, job.group].append(seconds)

    def left(self, now: float) -> float:
        """Return the seconds left ``now``, in seconds since the start of the call."""
        work = 0.0
        for name, job in self._left.items():
            own = self._cases.get((job.kind, job.group))
            seconds = statistics.median(own) if own else job.seconds
            work += max(0.0, seconds - (now - self._running.get(name, now)))
        return work / self._at_once


def time_left(seconds: float) -> str:
    """Format a forecast like ``about 12 min 00 s``."""
    return f"about {duration(seconds)}"
