"""Forecast of the time left, against calls with known job times."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from framebench.plan.job import Job
from framebench.runs.forecast import Forecast

#: Recorded calls: the estimate of each job, the seconds it took, and when it ended.
CALLS = sorted((Path(__file__).parents[2] / "data" / "calls").glob("*.csv"))


def jobs(count: int, kind: str = "run") -> list[Job]:
    return [Job(f"{kind}{n}", kind, f"{n}", 10.0) for n in range(count)]


@pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)
def test_the_estimate_of_a_real_call_is_at_most_a_third_off(path: Path) -> None:
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    made = [
        Job(f"{n}", row["kind"], row["case"], float(row["seconds"])) for n, row in enumerate(rows)
    ]
    assert Forecast(made).left(0.0) == pytest.approx(float(rows[-1]["ended"]), rel=1 / 3)


def test_a_case_takes_what_it_took() -> None:
    again = jobs(1)[0]._replace(name="again")
    forecast = Forecast([*jobs(2), again])
    forecast.finish("run0", 60.0)
    forecast.finish("run1", 10.0)
    assert forecast.left(70.0) == 60


def test_running_jobs_count_what_is_left_of_them() -> None:
    forecast = Forecast(jobs(8), 4.0)
    assert forecast.left(0.0) == 20
    forecast.start("run0", 0.0)
    assert forecast.left(4.0) == 19
    assert forecast.left(30.0) == 17.5, "an overdue job"


def test_an_unknown_job_counts_for_nothing_until_it_is_added() -> None:
    forecast = Forecast(jobs(1))
    forecast.start("another", 0.0)
    forecast.finish("another", 1000.0)
    assert forecast.left(0.0) == 10
    forecast.add([Job("another", "run", "another", 5.0)])
    assert forecast.left(0.0) == 15
    for name in ("run0", "another"):
        forecast.finish(name, 5.0)
    assert forecast.left(9.0) == 0
