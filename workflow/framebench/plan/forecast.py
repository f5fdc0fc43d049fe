"""How long the rest of a call takes: what the plan expects of each task, corrected by what those
that have finished took. Pure: whoever asks brings the time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

#: What is expected of a node of the tree weighs as much as so many tasks measured in it.
_PRIOR_WEIGHT = 1.0
#: Relative error of the forecast of one task, before any has shown: of a case that has not been
#: measured in this call, and of a repeat of one that has. Each weighs as much as so many tasks.
_NEW, _REPEATED, _ERROR_WEIGHT = 0.5, 0.15, 2.0
#: Standard deviations to either side of a range that holds 80 % of a normal distribution.
_RANGE = 1.28

_MINUTE, _HOUR, DAY = 60.0, 3600.0, 86400.0


class Task(NamedTuple):
    """Something to wait for. ``levels``: from the most general to its own case, what it is like:
    what tasks of the same level took corrects what is expected of it. ``seconds``: expected;
    ``is_measured``: because its case took as long before."""

    name: str
    levels: tuple[str, ...]
    seconds: float
    is_measured: bool = False


class Left(NamedTuple):
    """Seconds until all is done: the forecast, and a range that should hold in four of five."""

    seconds: float
    low: float
    high: float


class Forecast:
    """``tasks``: all that are to be done; ``at_once``: of how many the time passes at once.

    The factor between measured and expected seconds of a level is that of the level above it,
    counted as one more task, and of the tasks measured in it: the sum of their seconds over the sum
    of what was expected. Failed tasks count like others, since what is like them fails as fast. The
    range follows from the errors that this very call has made for single tasks so far.
    """

    def __init__(self, tasks: Iterable[Task], at_once: float = 1.0) -> None:
        self._left: dict[str, Task] = {}
        self._at_once = at_once
        self._measured: dict[tuple[str, ...], float] = defaultdict(float)
        self._expected: dict[tuple[str, ...], float] = defaultdict(float)
        self._count: dict[tuple[str, ...], int] = defaultdict(int)
        self._worked = self._until = 0.0
        self._squares = {True: 0.0, False: 0.0}
        self._errors = {True: 0, False: 0}
        self.add(tasks)

    def add(self, tasks: Iterable[Task]) -> None:
        """Tasks that were not known before."""
        self._left.update((task.name, task) for task in tasks)

    def finish(self, name: str, seconds: float, now: float) -> None:
        """A task took so many ``seconds`` and ended ``now``, in seconds since the start. One that
        is not known, or has finished already, counts for nothing."""
        task = self._left.pop(name, None)
        if task is None:
            return
        self._worked += seconds
        self._until = now
        predicted, is_new = self._seconds(task), self._is_new(task)
        self._squares[is_new] += (seconds / predicted - 1) ** 2
        self._errors[is_new] += 1
        for end in range(len(task.levels) + 1):
            self._measured[task.levels[:end]] += seconds
            self._expected[task.levels[:end]] += task.seconds
            self._count[task.levels[:end]] += 1

    def left(self, now: float) -> Left:
        """``now``: in seconds since the start."""
        cases: dict[tuple[str, ...], float] = defaultdict(float)
        for task in self._left.values():
            cases[task.levels] += self._seconds(task)
        new = {task.levels for task in self._left.values() if self._is_new(task)}
        error = {is_new: self._error(is_new) for is_new in (True, False)}
        # Repeats of a case miss together, different cases by themselves; those that no case like
        # them was measured for also miss together by what the factor is wrong.
        variance = sum((cases[one] * error[one in new]) ** 2 for one in cases)
        common = sum(cases[one] for one in new) * error[True]
        variance += common**2 / (1 + self._errors[True])
        work = sum(cases.values())
        rate = self._rate()
        seconds = max(work / rate - (now - self._until), 0.0) if work else 0.0
        spread = math.exp(_RANGE * math.sqrt(variance) / work) if work else 1.0
        return Left(seconds, seconds / spread, seconds * spread)

    def _is_new(self, task: Task) -> bool:
        return not (task.is_measured or self._count[task.levels])

    def _rate(self) -> float:
        """Seconds of work done in a second: below 1 where something passes between tasks, above
        where several run at once. Until a few are done, what was told."""
        if not self._until:
            return self._at_once
        typical = self._worked / self._count[()]
        return (self._worked + typical * self._at_once) / (self._until + typical)

    def _error(self, is_new: bool) -> float:
        prior = _ERROR_WEIGHT * (_NEW if is_new else _REPEATED) ** 2
        return math.sqrt((prior + self._squares[is_new]) / (_ERROR_WEIGHT + self._errors[is_new]))

    def _seconds(self, task: Task) -> float:
        """What is expected of a task by now."""
        factor = 1.0
        for end in range(len(task.levels) + 1):
            level = task.levels[:end]
            if not self._count[level]:
                break
            # One more task of the level's usual length, as long as the level above says.
            weight = _PRIOR_WEIGHT * self._expected[level] / self._count[level]
            factor = (self._measured[level] + weight * factor) / (self._expected[level] + weight)
        return task.seconds * factor


def time_left(left: Left) -> str:
    """``about 12 min (9 to 16)``: all three in the unit of the first."""
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
