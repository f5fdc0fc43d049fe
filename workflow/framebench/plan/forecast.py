"""Forecast of the time left: expected seconds of each job, corrected by the jobs that ended."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from .jobs import Job

#: Relative deviations of estimates: before a job of the kind has ended, the lower limit, and for a
#: job whose case was measured before.
GUESSED, LEAST, MEASURED = 0.4, 0.08, 0.15
#: Number of ended jobs that count as much as the estimate.
WEIGHT = 2.0
#: Standard deviations on either side of a range that holds 80 % of a normal distribution.
_RANGE = 1.28
#: Expected rest of an overdue job, as a part of what it has taken.
_OVERDUE = 0.2

_MINUTE, _HOUR, DAY = 60.0, 3600.0, 86400.0


class Left(NamedTuple):
    """Seconds until all jobs are done: the forecast and its range."""

    seconds: float
    low: float
    high: float


class Forecast:
    """Time left for ``jobs``, of which ``at_once`` run concurrently.

    A job is expected to take the median of its case in this call. Without one, its estimate is
    scaled by the ratio of seconds taken to seconds estimated of ended jobs of its kind. The range
    narrows as jobs of each kind end.
    """

    def __init__(self, jobs: Iterable[Job], at_once: float = 1.0) -> None:
        self._left: dict[str, Job] = {}
        self._running: dict[str, float] = {}
        self._at_once = at_once
        self._cases: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._took: defaultdict[str, float] = defaultdict(float)
        self._estimated: defaultdict[str, float] = defaultdict(float)
        self._ended: Counter[str] = Counter()
        self._worked = self._until = 0.0
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add new jobs."""
        self._left.update((job.name, job) for job in jobs)

    def start(self, name: str, now: float) -> None:
        """Note that a job begins ``now``, in seconds since the start of the call."""
        if name in self._left:
            self._running[name] = now

    def finish(self, name: str, seconds: float, now: float, is_ok: bool = True) -> None:
        """Note that a job ended ``now`` after so many ``seconds``; unknown jobs are ignored.

        ``is_ok``: it did all its work. Other jobs do not correct the estimates.
        """
        job = self._left.pop(name, None)
        self._running.pop(name, None)
        if job is None:
            return
        self._cases[job.kind, job.group].append(seconds)
        self._worked, self._until = self._worked + seconds, now
        if is_ok:
            self._took[job.kind] += seconds
            self._estimated[job.kind] += job.seconds
            self._ended[job.kind] += 1

    def left(self, now: float) -> Left:
        """Return the time left ``now``, in seconds since the start of the call."""
        corrections = {kind: self._correction(kind) for kind in self._ended}
        work = deviation = 0.0
        for name, job in self._left.items():
            seconds, spread = self._expected(job, corrections.get(job.kind, 1.0))
            if name in self._running:
                took = now - self._running[name]
                seconds = max(seconds - took, _OVERDUE * took)
            work += seconds
            deviation += seconds * spread
        seconds, factor = work / self._rate(), math.exp(_RANGE * deviation / work if work else 0.0)
        return Left(seconds, seconds / factor, seconds * factor)

    def _correction(self, kind: str) -> float:
        """Return seconds taken over seconds estimated, drawn towards 1 while few have ended."""
        prior = WEIGHT * self._estimated[kind] / self._ended[kind]
        return (self._took[kind] + prior) / (self._estimated[kind] + prior)

    def _expected(self, job: Job, correction: float) -> tuple[float, float]:
        """Return the expected seconds of a job and their relative deviation."""
        own = self._cases.get((job.kind, job.group))
        if own:
            return statistics.median(own), MEASURED
        if job.is_measured:
            return job.seconds, MEASURED
        spread = GUESSED / math.sqrt(1 + self._ended[job.kind] / WEIGHT) + LEAST
        return job.seconds * correction, spread

    def _rate(self) -> float:
        """Return the seconds of work done per second: ``at_once`` until jobs have ended."""
        ended = sum(map(len, self._cases.values()))
        if not ended:
            return self._at_once
        typical = self._worked / ended
        return (self._worked + typical * self._at_once) / (self._until + typical)


def time_left(left: Left) -> str:
    """Format a forecast like ``about 12 min (9 to 16)``, in the unit of the first number."""
    size, unit, digits = _unit(left.seconds)
    low, middle, high = (
        f"{value / size:.{digits}f}" for value in (left.low, left.seconds, left.high)
    )
    between = f" ({low} to {high})" if low != high else ""
    return f"about {middle} {unit}{between}"


def _unit(seconds: float) -> tuple[float, str, int]:
    if seconds < 1.5 * _MINUTE:
        return 1.0, "s", 0
    if seconds < 1.5 * _HOUR:
        return _MINUTE, "min", 0
    return (_HOUR, "h", 1) if seconds < DAY else (DAY, "days", 1)
