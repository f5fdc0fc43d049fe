"""How long the rest of a call takes: what the plan expects of each task, corrected by what those
that have finished took. Pure: whoever asks brings the time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from .failures import Failures
from .tasks import Task, Traits

#: Standard deviations to either side of a range that holds 80 % of a normal distribution.
_RANGE = 1.28
#: Of what a task has taken that should have ended, so much is expected to be left.
_OVERDUE = 0.2

_MINUTE, _HOUR, DAY = 60.0, 3600.0, 86400.0


class Left(NamedTuple):
    """Seconds until all is done: the forecast, and a range that should hold in four of five."""

    seconds: float
    low: float
    high: float


class _Rest(NamedTuple):
    """Seconds of ``work`` that are left, their relative ``deviation``, and what is ``expected`` of
    each task but for its name."""

    work: float
    deviation: float
    expected: dict[Task, float]


class Forecast:
    """``tasks``: all that are to be done; ``at_once``: of how many the time passes at once.

    What each takes is learned from those that have ended, see
    :class:`framebench.plan.effects.Effects`, and whether it fails, see
    :class:`framebench.plan.failures.Failures`. The range follows from what is not known of both.
    """

    def __init__(self, tasks: Iterable[Task], at_once: float = 1.0) -> None:
        from .effects import Effects  # here: numpy takes its time, and many calls forecast nothing

        self._left: dict[str, Task] = {}
        self._running: dict[str, float] = {}
        self._at_once = at_once
        self._effects, self._failures = Effects(), Failures()
        self._worked = self._until = 0.0
        self._ended = 0
        self._rest: _Rest | None = None
        self.add(tasks)

    def add(self, tasks: Iterable[Task]) -> None:
        """Tasks that were not known before."""
        self._left.update((task.name, task) for task in tasks)
        self._rest = None

    def start(self, name: str, now: float) -> None:
        """A task begins ``now``, in seconds since the start. Not to be told of one that waits."""
        if name in self._left:
            self._running[name] = now

    def finish(self, name: str, seconds: float, now: float, is_ok: bool = True) -> None:
        """A task took so many ``seconds`` and ended ``now``, in seconds since the start; ``is_ok``:
        it did all that it was to do. One that is not known, or has finished already, counts for
        nothing."""
        task = self._left.pop(name, None)
        self._running.pop(name, None)
        if task is None:
            return
        self._rest = None
        self._worked += seconds
        self._until = now
        self._ended += 1
        self._failures.add(task, seconds, is_ok)
        if is_ok:
            self._effects.add(task, seconds)

    def left(self, now: float) -> Left:
        """``now``: in seconds since the start."""
        if self._rest is None:
            self._rest = self._looked_at()
        work, deviation, expected = self._rest
        passed = 0.0
        for name, started in self._running.items():
            # Never so much has passed of one that less is left than a part of what it has taken.
            whole, took = expected[_alike(self._left[name])], now - started
            passed += whole - max(whole - took, _OVERDUE * took)
        seconds = (work - passed) / self._rate()
        spread = math.exp(_RANGE * deviation)
        return Left(seconds, seconds / spread, seconds * spread)

    def _looked_at(self) -> _Rest:
        """The rest by what is known, whenever that has changed: it may be of thousands of tasks."""
        work, variance = 0.0, 0.0
        slopes: list[tuple[int, float]] = []
        expected: dict[Task, float] = {}
        together: dict[Traits, float] = defaultdict(float)
        for one, count in Counter(map(_alike, self._left.values())).items():
            well = self._effects.expected(one)
            chance, failed = self._failures.expected(one)
            seconds = (1 - chance) * well.seconds
            expected[one] = seconds + chance * failed
            work += count * expected[one]
            slopes += [(number, count * seconds * slope) for number, slope in well.slopes]
            # Those of a case share all but chance, and fail together.
            variance += count * seconds**2 * well.own
            together[one.traits] += count * seconds * math.sqrt(well.shared)
            variance += count**2 * chance * (1 - chance) * (well.seconds - failed) ** 2
        variance += sum(one**2 for one in together.values()) + self._effects.variance(slopes)
        return _Rest(work, math.sqrt(variance) / work if work else 0.0, expected)

    def _rate(self) -> float:
        """Seconds of work done in a second: below 1 where something passes between tasks, above
        where several run at once. Until a few are done, what was told."""
        if not self._until:
            return self._at_once
        typical = self._worked / self._ended
        return (self._worked + typical * self._at_once) / (self._until + typical)


def _alike(task: Task) -> Task:
    """The same of all tasks of its case of which as much was guessed."""
    return task._replace(name="")


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
