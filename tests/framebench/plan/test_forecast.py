"""Forecast of the time left, against calls with known job times."""

from __future__ import annotations

from framebench.plan.job import Job
from framebench.runs.forecast import Forecast


def jobs(count: int) -> list[Job]:
    return [Job("run", f"{n}/r1", 10.0) for n in range(count)]


def test_a_case_takes_what_it_took() -> None:
    again = jobs(1)[0]._replace(path="0/r2")
    forecast = Forecast([*jobs(2), again])
    forecast.finish("run/0/r1", 60.0)
    forecast.finish("run/1/r1", 10.0)
    assert forecast.left(70.0) == 60


def test_running_jobs_count_what_is_left_of_them() -> None:
    forecast = Forecast(jobs(8), 4.0)
    assert forecast.left(0.0) == 20
    forecast.start("run/0/r1", 0.0)
    assert forecast.left(4.0) == 19
    assert forecast.left(30.0) == 17.5, "an overdue job"


def test_an_unknown_job_counts_for_nothing_until_it_is_added() -> None:
    forecast = Forecast(jobs(1))
    forecast.start("run/9/r1", 0.0)
    forecast.finish("run/9/r1", 1000.0)
    assert forecast.left(0.0) == 10
    forecast.add([Job("run", "9/r1", 5.0)])
    assert forecast.left(0.0) == 15
    for name in ("run/0/r1", "run/9/r1"):
        forecast.finish(name, 5.0)
    assert forecast.left(9.0) == 0
