"""What was expected of each task of a call and what it took, and what the forecast would have said
on the way: ``framebench forecast``. Kept in ``logs/tasks.csv`` in the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..plan.forecast import Forecast, Left, time_left
from ..plan.tasks import Guess, Task, Traits
from ..records.beside import noted
from ..records.run import Problem
from .view import FinishedTask

FILE = Path("logs", "tasks.csv")
#: Parts of a call's time at which the forecast is compared with what came.
PARTS = (0.0, 0.1, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: From this part on, the time left is to be as near as that.
QUARTER, NEAR = 0.25, 0.2


class TaskRow(NamedTuple):
    """A task that is over. ``call``: when it started; ``at_once``: as the call expected;
    ``traits``: of the task, with blanks between; ``start``, ``work``: expected; ``measured``: 1
    where they are of the case's own records; times in seconds."""

    call: str
    at_once: str
    task: str
    traits: str
    start: str
    work: str
    measured: str
    status: str
    took: str
    ended: str


class Moment(NamedTuple):
    """The forecast at a part of a call's time, and what was left in truth."""

    part: float
    forecast: Left
    truth: float

    @property
    def error(self) -> float:
        """Of the forecast, as a part of the truth."""
        return self.forecast.seconds / self.truth - 1

    @property
    def is_near(self) -> bool:
        return abs(self.error) <= NEAR

    @property
    def is_in_range(self) -> bool:
        return self.forecast.low <= self.truth <= self.forecast.high


class Told:
    """Adds what has finished to the file of one call."""

    def __init__(self, results: Path, at_once: float) -> None:
        self._path, self._at_once, self._call = results / FILE, at_once, noted.now()

    def add(self, one: FinishedTask) -> None:
        """Raises OSError."""
        row = row_of(
            self._call, self._at_once, one.awaited.task, one.status, one.seconds, one.ended
        )
        noted.append(self._path, TaskRow._fields, [row])


def row_of(
    call: str, at_once: float, task: Task, status: str, seconds: float, ended: float
) -> TaskRow:
    return TaskRow(
        call, f"{at_once:.3f}", task.name, " ".join(task.traits), f"{task.guess.start:.2f}",
        f"{task.guess.work:.2f}", "1" * task.is_measured, status, f"{seconds:.2f}", f"{ended:.2f}",
    )  # fmt: skip


def load(path: Path) -> tuple[dict[str, list[TaskRow]], list[Problem]]:
    """The tasks of each call in the order in which they ended, and lines that are none."""
    rows, problems = noted.read(path, TaskRow._fields)
    calls: dict[str, list[TaskRow]] = {}
    for line in rows:
        row = TaskRow(*line)
        try:
            task_of(row)
            [float(cell) for cell in (row.at_once, row.took, row.ended)]
        except (ValueError, TypeError) as error:
            problems.append(Problem(path.name, str(error)))
            continue
        calls.setdefault(row.call, []).append(row)
    return calls, problems


def moments(rows: Sequence[TaskRow], parts: Iterable[float] = PARTS) -> Iterator[Moment]:
    """What the forecast would have said at ``parts``, in their order, of the time of a call that
    did all of its tasks: these ``rows``."""
    whole = max(float(row.ended) for row in rows)
    forecast = Forecast(map(task_of, rows), float(rows[0].at_once))
    events = [(float(row.ended), False, row) for row in rows]
    events += [(float(row.ended) - float(row.took), True, row) for row in rows]
    events.sort(key=lambda event: event[:2], reverse=True)
    for part in parts:
        now = part * whole
        while events and events[-1][0] <= now + 1e-6:
            when, is_start, row = events.pop()
            if is_start:
                forecast.start(row.task, when)
            else:
                forecast.finish(row.task, float(row.took), when, row.status == "ok")
        yield Moment(part, forecast.left(now), whole - now)


def judged(rows: Sequence[TaskRow]) -> list[Moment]:
    """The moments behind each result by which a forecast is judged: from a quarter of the way on,
    while more is left than the longest task takes."""
    whole = max(float(row.ended) for row in rows)
    longest = max(float(row.took) for row in rows)
    ends = sorted(float(row.ended) for row in rows)
    parts = (end / whole for end in ends if QUARTER * whole <= end < whole - longest)
    return [*moments(rows, parts)]


def table(call: str, rows: Sequence[TaskRow]) -> str:
    """The moments of a call, for people."""
    whole = max(float(row.ended) for row in rows)
    bad = sum(row.status != "ok" for row in rows)
    lines = [f"call of {call}: {len(rows)} tasks, {bad} of them not ok, {whole:.0f} s"]
    lines += ["  of its time   forecast of the rest              truth    error"]
    for one in moments(rows):
        within = "" if one.is_in_range else "  outside the range"
        lines.append(
            f"  {one.part * 100:9.0f} %   {time_left(one.forecast):30}{one.truth:7.0f} s"
            f"  {one.error * 100:+5.0f} %{within}"
        )
    each = judged(rows)
    if each:
        furthest = max(each, key=lambda one: abs(one.error))
        lines.append(
            f"  behind each of {len(each)} results from {QUARTER:.0%} on: "
            f"within {NEAR:.0%} {sum(one.is_near for one in each)} times, "
            f"in the range {sum(one.is_in_range for one in each)} times; "
            f"furthest {furthest.error * 100:+.0f} % at {furthest.part * 100:.0f} %"
        )
    return "\n".join(lines)


def task_of(row: TaskRow) -> Task:
    """Raises ValueError or TypeError where it is none."""
    guess = Guess(float(row.start), float(row.work))
    return Task(row.task, Traits(*row.traits.split(" ")), guess, bool(row.measured))
