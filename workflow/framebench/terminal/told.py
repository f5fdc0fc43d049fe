"""What was expected of each task of a call and what it took, and what the forecast would have said
on the way: ``framebench forecast``. Kept in ``logs/tasks.csv`` in the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..plan.forecast import Forecast, Left, Task, time_left
from ..records.beside import noted
from ..records.run import Problem
from .view import Finished

FILE = Path("logs", "tasks.csv")
#: Parts of a call's time at which the forecast is compared with what came.
PARTS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)


class Row(NamedTuple):
    """A task that is over. ``call``: when it started; ``at_once``: as the call expected;
    ``levels``: of the task, with blanks between; times in seconds."""

    call: str
    at_once: str
    task: str
    levels: str
    expected: str
    of_short: str
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


class Told:
    """Adds what has finished to the file of one call."""

    def __init__(self, results: Path, at_once: float) -> None:
        self._path, self._at_once, self._call = results / FILE, at_once, noted.now()

    def add(self, one: Finished) -> None:
        """Raises OSError."""
        task = one.awaited.task
        row = Row(
            self._call, f"{self._at_once:.3f}", task.name, " ".join(task.levels),
            f"{task.seconds:.2f}", f"{task.of_short:g}", one.status, f"{one.seconds:.2f}",
            f"{one.ended:.2f}",
        )  # fmt: skip
        noted.append(self._path, Row._fields, [row])


def load(path: Path) -> tuple[dict[str, list[Row]], list[Problem]]:
    """The tasks of each call in the order in which they ended, and lines that are none."""
    rows, problems = noted.read(path, Row._fields)
    calls: dict[str, list[Row]] = {}
    for line in rows:
        row = Row(*line)
        try:
            [float(cell) for cell in (row.at_once, row.expected, row.of_short, row.took, row.ended)]
        except ValueError as error:
            problems.append(Problem(path.name, str(error)))
            continue
        calls.setdefault(row.call, []).append(row)
    return calls, problems


def moments(rows: Sequence[Row], parts: Iterable[float] = PARTS) -> Iterator[Moment]:
    """What the forecast would have said at ``parts`` of the time of a call that did all of its
    tasks: these ``rows``."""
    whole = max(float(row.ended) for row in rows)
    for part in parts:
        now = part * whole
        forecast = Forecast((task_of(row) for row in rows), float(rows[0].at_once))
        for row in rows:
            took, ended = float(row.took), float(row.ended)
            if ended <= now:
                forecast.finish(row.task, took, ended, row.status == "ok")
            elif ended - took <= now:
                forecast.start(row.task, ended - took)
        yield Moment(part, forecast.left(now), whole - now)


def table(call: str, rows: Sequence[Row]) -> str:
    """The moments of a call, for people."""
    whole = max(float(row.ended) for row in rows)
    bad = sum(row.status != "ok" for row in rows)
    lines = [f"call of {call}: {len(rows)} tasks, {bad} of them not ok, {whole:.0f} s"]
    lines += ["  of its time   forecast of the rest              truth    error"]
    for one in moments(rows):
        within = "" if one.forecast.low <= one.truth <= one.forecast.high else "  outside the range"
        lines.append(
            f"  {one.part * 100:9.0f} %   {time_left(one.forecast):30}{one.truth:7.0f} s"
            f"  {one.error * 100:+5.0f} %{within}"
        )
    return "\n".join(lines)


def task_of(row: Row) -> Task:
    levels, expected = tuple(row.levels.split(" ")), float(row.expected)
    return Task(row.task, levels, expected, of_short=float(row.of_short))
