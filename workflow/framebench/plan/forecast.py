"""Forecast of the time left: expected seconds of each task, corrected by the tasks that ended."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from .tasks import PendingTask

#: Relative deviations of estimates: before a task of the kind has ended, the lower limit, and for a
#: task whose case was measured before.
_GUESSED, _LEAST, _MEASURED = 0.4, 0.08, 0.15
#: Number of ended tasks that count as much as the estimate.
_WEIGHT = 2.0
#: Standard deviations on either side of a range that holds 80 % of a normal distribution.
_RANGE = 1.28
#: Expected rest of an overdue task, as a part of what it has taken.
_OVERDUE = 0.2

_MINUTE, _HOUR, DAY = 60.0, 3600.0, 86400.0


class Left(NamedTuple):
    """Seconds until all tasks are done: the forecast and its range."""

    seconds: float
    low: float
    high: float


class Forecast:
    """Time left for ``tasks``, of which ``at_once`` run concurrently.

    A task is expected to take the median of its case in this call. Without one, its estimate is
    scaled by the ratio of seconds taken to seconds estimated of ended tasks of its kind. The range
    narrows as tasks of each kind end.
    """

    def __init__(self, tasks: Iterable[PendingTask], at_once: float = 1.0) -> None:
        self._left: dict[str, PendingTask] = {}
        self._running: dict[str, float] = {}
        self._at_once = at_once
        self._cases: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._took: defaultdict[str, float] = defaultdict(float)
        self._estimated: defaultdict[str, float] = defaultdict(float)
        self._ended: Counter[str] = Counter()
        self._worked = self._until = 0.0
        self.add(tasks)

    def add(self, tasks: Iterable[PendingTask]) -> None:
        """Add new tasks."""
        self._left.update((task.name, task) for task in tasks)

    def start(self, name: str, now: float) -> None:
        """Note that a task begins ``now``, in seconds since the start of the call."""
        if name in self._left:
            self._running[name] = now

    def finish(self, name: str, seconds: float, now: float, is_ok: bool = True) -> None:
        """Note that a task ended ``now`` after so many ``seconds``; unknown tasks are ignored.

        ``is_ok``: it did all its work. Other tasks do not correct the estimates.
        """
        task = self._left.pop(name, None)
        self._running.pop(name, None)
        if task is None:
            return
        self._cases[task.kind, task.case].append(seconds)
        self._worked, self._until = self._worked + seconds, now
        if is_ok:
            self._took[task.kind] += seconds
            self._estimated[task.kind] += task.seconds
            self._ended[task.kind] += 1

    def left(self, now: float) -> Left:
        """Return the time left ``now``, in seconds since the start of the call."""
        corrections = {kind: self._correction(kind) for kind in self._ended}
        work = deviation = 0.0
        for name, task in self._left.items():
            seconds, spread = self._expected(task, corrections.get(task.kind, 1.0))
            if name in self._running:
                took = now - self._running[name]
                seconds = max(seconds - took, _OVERDUE * took)
            work += seconds
            deviation += seconds * spread
        seconds, factor = work / self._rate(), math.exp(_RANGE * deviation / work if work else 0.0)
        return Left(seconds, seconds / factor, seconds * factor)

    def _correction(self, kind: str) -> float:
        """Return seconds taken over seconds estimated, drawn towards 1 while few have ended."""
        prior = _WEIGHT * self._estimated[kind] / self._ended[kind]
        return (self._took[kind] + prior) / (self._estimated[kind] + prior)

    def _expected(self, task: PendingTask, correction: float) -> tuple[float, float]:
        """Return the expected seconds of a task and their relative deviation."""
        own = self._cases.get((task.kind, task.case))
        if own:
            return statistics.median(own), _MEASURED
        if task.is_measured:
            return task.seconds, _MEASURED
        spread = _GUESSED / math.sqrt(1 + self._ended[task.kind] / _WEIGHT) + _LEAST
        return task.seconds * correction, spread

    def _rate(self) -> float:
        """Return the seconds of work done per second: ``at_once`` until tasks have ended."""
        ended = sum(map(len, self._cases.values()))
        if not ended:
            return self._at_once
        typical = self._worked / ended
        return (self._worked + typical * self._at_once) / (self._until + typical)


def time_left(left: Left) -> str:
    """Format a forecast like ``about 12 min (9 to 16)``, in the unit of the first number."""
    size, unit, digits = _unit(left.seconds)
    low, middle, high = (f"{one / size:.{digits}f}" for one in (left.low, left.seconds, left.high))
    between = f" ({low} to {high})" if low != high else ""
    return f"about {middle} {unit}{between}"


def _unit(seconds: float) -> tuple[float, str, int]:
    if seconds < 1.5 * _MINUTE:
        return 1.0, "s", 0
    if seconds < 1.5 * _HOUR:
        return _MINUTE, "min", 0
    return (_HOUR, "h", 1) if seconds < DAY else (DAY, "days", 1)
