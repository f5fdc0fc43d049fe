"""Steadiness: simulated error rates on steady and on changing timed regions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from framebench.statistics import steady

from .steps import HANGING_TOGETHER, NOT_STEADY, STALLED, STEADY, UNSTALLED, called

DRAWS = 1000
TRACES = json.loads((Path(__file__).parent / "traces.json").read_text())


@pytest.mark.parametrize("count", [20, 100])
@pytest.mark.parametrize("name", STEADY)
def test_a_steady_window_is_rarely_called_unsteady(name: str, count: int) -> None:
    promised = HANGING_TOGETHER if name == "hanging together" else steady.SIGNIFICANCE
    rate = called(STEADY[name], count, DRAWS)
    error = (promised * (1 - promised) / DRAWS) ** 0.5
    assert rate <= promised + 3 * error, f"{name}: {rate}"


@pytest.mark.parametrize("name", NOT_STEADY)
def test_a_change_is_found_in_a_hundred_steps(name: str) -> None:
    rate = called(NOT_STEADY[name], 100, 300)
    assert rate >= 0.9, f"{name}: {rate}"


@pytest.mark.parametrize("count", [16, 30])
@pytest.mark.parametrize("name", STALLED)
def test_a_step_that_takes_a_part_of_the_window_for_itself_is_found(name: str, count: int) -> None:
    random = np.random.default_rng(0)
    windows = [STALLED[name](random, count).tolist() for _ in range(300)]
    assert np.mean([steady.stall(window) is not None for window in windows]) >= 0.99
    assert steady.unsteady(windows[0])


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("name", UNSTALLED)
def test_ordinary_noise_is_rarely_called_a_stall(name: str, count: int) -> None:
    draw, promised = UNSTALLED[name]
    random = np.random.default_rng(0)
    rate = np.mean([steady.stall(draw(random, count)) is not None for _ in range(DRAWS)])
    assert rate <= promised + 3 * (promised * (1 - promised) / DRAWS) ** 0.5


def test_a_stall_says_which_step_and_how_long() -> None:
    steps = [1.8, 2.0, 4.9, 3.1, 44.0, 2.2]
    assert steady.unsteady(steps) == "step 5 of 6 took 44 s, the others at most 4.9 s"
    assert steady.unsteady(steps[:4]) == ""
    assert steady.unsteady([*steps, 40.0]) == "", "two of the same length are how the machine runs"
    assert steady.unsteady([0.1, 9.0]) == "", "of two steps nobody knows which one is odd"
    little = [1.0] * 1000 + [10.0]
    assert steady.unsteady(little) == "", "it moves the throughput by less than 1 %"
    late = [1.0, 1.01, 0.99, 1.0, 1.02] * 4 + [1.1, 1.09, 1.11, 1.12, 1.1] * 4 + [30.0]
    assert "+10" in steady.unsteady(late)
    assert steady.unsteady(late).endswith("; step 41 of 41 took 30 s, the others at most 1.12 s")


def test_a_part_that_differs_from_the_rest_is_said_to() -> None:
    steps = np.random.default_rng(0).normal(1, 0.01, 90)
    steps[30:60] *= 1.1
    assert steady.unsteady(steps.tolist()).startswith("steps 31 to 60 of 90 took +")


def test_slow_first_steps_are_found_among_few() -> None:
    steps = np.random.default_rng(0).normal(1, 0.01, 30)
    assert steady.unsteady(steps.tolist()) == ""
    steps[:2] *= 1.5
    expected = "the first 2 of 30 steps took longer than all others"
    assert steady.unsteady(steps.tolist()) == expected
    many = [*steps.tolist(), *[1.0] * 300]
    assert steady.slow_start(many) is None, "they hardly change the throughput"
    assert steady.slow_start([*steps[1:].tolist(), 1.6]) is None


@pytest.mark.parametrize("count", [2, 5, steady.FEWEST_STEPS - 1])
def test_too_few_steps_cannot_tell(count: int) -> None:
    steps = np.where(np.arange(count) < count / 2, 2.0, 1.0)
    assert steady.change(steps.tolist()) is None


def test_a_smooth_drift_is_not_put_down_to_steps_that_hang_together() -> None:
    ramp = np.linspace(1, 1.05, 100).tolist()
    assert "the last 20 of 100 steps took +4.0% against the first 20" in steady.unsteady(ramp)
    assert steady.unsteady([1.0] * 100) == "", "no clock is too coarse for steps that are the same"


def test_a_change_says_where_and_how_much() -> None:
    random = np.random.default_rng(0)
    steps = random.normal(0.2, 0.001, 100)
    steps[60:] *= 1.1
    change = steady.change(steps.tolist())
    assert change is not None
    assert change.before == change.after == 60
    assert change.factor == pytest.approx(1.1, rel=0.01)
    assert steady.unsteady(steps.tolist()).startswith("steps took +10.")


@pytest.mark.parametrize("name", TRACES)
def test_recorded_windows_are_judged_as_a_person_would(name: str) -> None:
    trace = TRACES[name]
    assert bool(steady.unsteady(trace["seconds"])) == trace["unsteady"], trace["what"]
