"""Forecast of the time left, against calls with known task times."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from framebench.plan.forecast import Forecast, Left, time_left
from framebench.plan.jobs import Job

#: Recorded calls: the estimate of each task, the seconds it took, and when it ended.
CALLS = sorted((Path(__file__).parents[2] / "data" / "calls").glob("*.csv"))


def tasks(count: int, kind: str = "run", is_measured: bool = False) -> list[Job]:
    return [Job(f"{kind}{n}", kind, f"{n}", 10.0, is_measured) for n in range(count)]


def replay(path: Path) -> Iterator[tuple[Left, float]]:
    """Yield forecast and truth before the call and after each task.
    Stops when less time is left than the longest task takes."""
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    made = [
        Job(f"{n}", row["kind"], row["case"], float(row["seconds"])) for n, row in enumerate(rows)
    ]
    longest = max(float(row["took"]) for row in rows)
    whole = float(rows[-1]["ended"])
    forecast = Forecast(made)
    yield forecast.left(0.0), whole
    for task, row in zip(made, rows, strict=True):
        took, ended = float(row["took"]), float(row["ended"])
        forecast.finish(task.name, took, ended, row["status"] == "ok")
        if ended < whole - longest:
            yield forecast.left(ended), whole - ended


@pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)
def test_the_range_holds_in_four_of_five_forecasts_of_a_real_call(path: Path) -> None:
    moments = [*replay(path)]
    assert len(moments) > 50
    inside = sum(left.low <= truth <= left.high for left, truth in moments)
    assert inside >= 0.8 * len(moments), f"{inside} of {len(moments)}"
    widest = max(left.high / left.low for left, _ in moments)
    assert widest < 4, widest


@pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)
def test_the_estimate_of_a_real_call_is_at_most_a_third_off(path: Path) -> None:
    left, truth = next(replay(path))
    assert left.seconds == pytest.approx(truth, rel=1 / 3)


def test_seconds_of_records_have_a_narrow_range() -> None:
    new, known = (Forecast(tasks(4, is_measured=known)).left(0.0) for known in (False, True))
    assert new.seconds == known.seconds == 40
    assert known.high - known.low < (new.high - new.low) / 2


def test_what_ended_corrects_its_kind_alone() -> None:
    forecast = Forecast([*tasks(20), *tasks(20, "verification")])
    for number in range(19):
        forecast.finish(f"run{number}", 20.0, 20.0 * (number + 1))
    left = forecast.left(380.0)
    assert left.seconds == pytest.approx(220, rel=0.02), "a run of 20 s, verifications of 10 s"
    assert left.high / left.seconds > 1.5, "no verification has ended"
    for number in range(19):
        forecast.finish(f"verification{number}", 10.0, 380.0 + 10.0 * (number + 1))
    left = forecast.left(570.0)
    assert left.high / left.seconds < 1.5


def test_a_case_takes_what_it_took_even_where_it_failed() -> None:
    again = tasks(1)[0]._replace(name="again")
    forecast = Forecast([*tasks(2), again])
    forecast.finish("run0", 60.0, 60.0, is_ok=False)
    forecast.finish("run1", 10.0, 70.0)
    assert forecast.left(70.0).seconds == pytest.approx(60)


def test_several_at_once_take_less() -> None:
    assert Forecast(tasks(8), 4.0).left(0.0).seconds == 20
    forecast = Forecast(tasks(8), 1.0)
    for number in range(4):  # the plan did not know that four run at once
        forecast.finish(f"run{number}", 10.0, 10.0)
    assert forecast.left(10.0).seconds == pytest.approx(40 / (50 / 20), rel=0.05)


def test_a_task_that_is_overdue_is_not_over() -> None:
    forecast = Forecast(tasks(1))
    forecast.start("run0", 0.0)
    assert forecast.left(4.0).seconds == 6
    assert forecast.left(30.0).seconds == 6, "a part of what it has taken"


def test_an_unknown_task_counts_for_nothing_until_it_is_added() -> None:
    forecast = Forecast(tasks(1))
    forecast.start("another", 0.0)
    forecast.finish("another", 1000.0, 1.0)
    assert forecast.left(0.0).seconds == 10
    forecast.add([Job("another", "run", "another", 5.0)])
    assert forecast.left(0.0).seconds == 15
    for name in ("run0", "another"):
        forecast.finish(name, 5.0, 5.0)
    assert forecast.left(9.0) == (0, 0, 0)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (Left(40, 30, 62), "about 40 s (30 to 62)"),
        (Left(720, 540, 960), "about 12 min (9 to 16)"),
        (Left(9000, 7200, 12000), "about 2.5 h (2.0 to 3.3)"),
        (Left(3 * 86400, 86400, 5.5 * 86400), "about 3.0 days (1.0 to 5.5)"),
        (Left(40, 40, 40), "about 40 s"),
    ],
)
def test_the_range_is_in_the_unit_of_the_forecast(left: Left, said: str) -> None:
    assert time_left(left) == said
