"""How long the rest of a call takes: what the plan expects of each task, corrected by what those
that have finished took. Pure: whoever asks brings the time."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

#: What is expected of a node of the tree weighs as much as so many tasks measured in it.
_PRIOR_WEIGHT = 1.0
#: Relative error of the forecast of one task, before any has shown: of a case that has not been
#: measured in this call, and of a repeat of one that has. Each weighs as much as so many tasks.
_NEW, _REPEATED, _ERROR_WEIGHT = 0.5, 0.15, 2.0
#: The same of all tasks of a kind together of which none has been measured.
_KIND = 0.3
#: Standard deviations to either side of a range that holds 80 % of a normal distribution.
_RANGE = 1.28

#: Of what a task has taken that should have ended, so much is expected to be left.
_OVERDUE = 0.2

_MINUTE, _HOUR, DAY = 60.0, 3600.0, 86400.0


class Task(NamedTuple):
    """Something to wait for. ``levels``: from the most general to its own case, what it is like:
    what tasks of the same level took corrects what is expected of it. ``seconds``: expected;
    ``is_measured``: because its case took as long before; ``of_short``: as part of the short
    tasks of its second level, its framework, what it should take while none of its kind has been
    measured: most of the time of both is the framework's start. 0 where that says nothing."""

    name: str
    levels: tuple[str, ...]
    seconds: float
    is_measured: bool = False
    of_short: float = 0.0


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
        self._running: dict[str, float] = {}
        self._good: dict[tuple[str, ...], list[float]] = defaultdict(list)
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
        self._worked += seconds
        self._until = now
        predicted, is_new = self._seconds(task), self._is_new(task)
        self._squares[is_new] += (seconds / predicted - 1) ** 2
        self._errors[is_new] += 1
        if is_ok and len(task.levels) > 2:
            bisect.insort(self._good[task.levels[1:2]], seconds)
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
        # Repeats of a case miss together, different cases by themselves; those that are new also
        # miss together by what the factor is wrong, and a kind by itself until one was measured.
        variance = sum((cases[one] * error[one in new]) ** 2 for one in cases)
        kinds: dict[str, float] = defaultdict(float)
        for one in new:
            kinds[one[0]] += cases[one]
        variance += (sum(kinds.values()) * error[True]) ** 2 / (1 + self._errors[True])
        unknown = (seconds for kind, seconds in kinds.items() if not self._count[kind,])
        variance += sum((seconds * _KIND) ** 2 for seconds in unknown)
        work = sum(cases.values())
        seconds = (work - self._passed(now)) / self._rate()
        spread = math.exp(_RANGE * math.sqrt(variance) / work) if work else 1.0
        return Left(seconds, seconds / spread, seconds * spread)

    def _passed(self, now: float) -> float:
        """Seconds of the work that is left that have passed already: of tasks that run, but never
        so much that less is left of one than a part of what it has taken."""
        passed = 0.0
        for name, started in self._running.items():
            expected, took = self._seconds(self._left[name]), now - started
            passed += expected - max(expected - took, _OVERDUE * took)
        return passed

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
        factor = self._corrected((), 1.0)
        for end in range(1, len(task.levels) + 1):
            if end == 1:
                factor = self._across_kinds(task, factor)
            factor = self._corrected(task.levels[:end], factor)
        return task.seconds * factor

    def _corrected(self, level: tuple[str, ...], above: float) -> float:
        """The factor of a level, where that of the level above is known."""
        if not self._count[level]:
            return above
        # One more task of the level's usual length, as long as the level above says.
        weight = _PRIOR_WEIGHT * self._expected[level] / self._count[level]
        return (self._measured[level] + weight * above) / (self._expected[level] + weight)

    def _short(self, whose: tuple[str, ...]) -> float:
        """The lower quartile of the tasks of a framework that did all they were to do, else the
        least of other frameworks'; 0 where there are none."""
        quartiles = {one: took[len(took) // 4] for one, took in self._good.items() if took}
        return quartiles.get(whose) or min(quartiles.values(), default=0.0)

    def _across_kinds(self, task: Task, factor: float) -> float:
        """What all kinds say of one. They share the machine, and not what else was wrong with the
        guess: where nothing better is known, half of the factor, as a logarithm."""
        short = self._short(task.levels[1:2])
        if task.of_short and short:
            return task.of_short * short / task.seconds
        return factor if self._count[task.levels[:1]] else math.sqrt(factor)


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
