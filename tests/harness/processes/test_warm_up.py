"""Warm-up: until the step time has settled, in all ranks, within a limit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from harness.measuring.steps import FEWEST, GPU_SECONDS, TOLERANCE, is_settled, settled_after

from ...bench import Bench

DRAWS = 300


def settled(shape: Callable[[np.ndarray], np.ndarray], noise: float) -> list[float]:
    """Return the step at which each of DRAWS simulated warm-ups counted as settled, of 400 steps;
    infinity if it never did."""
    random = np.random.default_rng(0)
    draws = (shape(np.arange(400.0)) * random.normal(1, noise, 400) for _ in range(DRAWS))
    return [settled_after(seconds.tolist()) or np.inf for seconds in draws]


@pytest.mark.parametrize("noise", [0.001, 0.02, 0.1])
def test_steps_that_do_not_change_settle_at_once(noise: float) -> None:
    actual = settled(np.ones_like, noise)
    assert np.median(actual) <= FEWEST + 1
    assert np.quantile(actual, 0.95) <= 3 * FEWEST


@pytest.mark.parametrize(
    ("late", "noise"), [(5, 0.001), (5, 0.02), (20, 0.001), (20, 0.02), (50, 0.001)]
)
def test_slow_steps_at_the_start_are_waited_for(late: int, noise: float) -> None:
    """The first ``late`` steps fall to half, as with a frequency, a cache, or an autotuner."""
    actual = settled(lambda step: 1 + np.maximum(0, 1 - step / late), noise)
    assert np.quantile(actual, 0.05) >= late, "stopped before it had settled"
    assert np.quantile(actual, 0.95) <= 3 * late + FEWEST, "went on long after it had settled"


def test_a_single_compilation_is_over_with_its_step() -> None:
    actual = settled(lambda step: 1 + 100.0 * ((step == 0) | (step == 6)), 0.01)
    assert np.quantile(actual, 0.95) <= 2 * FEWEST


@pytest.mark.parametrize("growth", [1.01, 0.99])
def test_what_keeps_changing_never_settles(growth: float) -> None:
    actual = settled(lambda step: growth**step, 0.001)
    assert min(actual) == np.inf


def test_a_difference_below_the_tolerance_is_none() -> None:
    assert is_settled([1.0] * 5 + [1 + TOLERANCE / 2] * 5)
    assert not is_settled([1.0] * 5 + [1 + TOLERANCE * 2] * 5)
    assert not is_settled([1.0] * (FEWEST - 1))


def test_a_gpu_warms_up_for_seconds(toy: Bench) -> None:
    given = {"accelerator": "cuda", "warmup_steps": 3, "warmup_limit": 200}
    (rank,) = toy.run("exact,sleep=0.05", **given).record["ranks"]
    seconds = sum(rank["warmup_step_seconds"])
    assert rank["settled_after"] == len(rank["warmup_step_seconds"])
    assert GPU_SECONDS - 0.01 < seconds < 4


def test_ranks_warm_up_together(toy: Bench) -> None:
    done = toy.run(
        "exact,sleep=0.01,slow_until=7",  # rank 1: four steps more
        kind="inference",
        devices_per_node=2,
        warmup_steps=3,
        warmup_limit=200,
    )
    first, second = done.record["ranks"]
    assert done.record["settings"]["warmup_limit"] == 200
    assert 11 + 5 <= first["settled_after"] == second["settled_after"] < 34
    assert first["settled_after"] == len(first["warmup_step_seconds"])
    assert max(second["step_seconds"]) < 0.02, "slow steps are in the window"


def test_a_run_that_never_settles_stops_at_the_limit(toy: Bench) -> None:
    done = toy.run("exact,sleep=0.004,growth=1.2", warmup_steps=3, warmup_limit=20)
    (rank,) = done.record["ranks"]
    assert done.record["status"] == "ok"
    assert rank["settled_after"] is None
    assert len(rank["warmup_step_seconds"]) == 20


def test_a_fixed_warm_up_says_where_it_settled(toy: Bench) -> None:
    (rank,) = toy.run("exact,sleep=0.03", warmup_steps=4 * FEWEST).record["ranks"]
    assert len(rank["warmup_step_seconds"]) == 4 * FEWEST
    assert FEWEST <= rank["settled_after"] <= 4 * FEWEST


def test_a_limit_that_nothing_can_settle_within_is_refused(toy: Bench) -> None:
    done = toy.run("", warmup_steps=3, warmup_limit=FEWEST - 1)
    assert done.status == 2
    assert f"--warmup-limit must be {FEWEST} or more" in done.stderr
    assert done.record is None


def test_a_timed_region_has_as_many_steps_as_take_its_seconds(toy: Bench) -> None:
    steps = {"warmup_steps": 4, "timed_steps": 3, "timed_seconds": 1}
    done = toy.run("exact,sleep=0.02", **steps, devices_per_node=2)
    (count,) = {len(rank["step_seconds"]) for rank in done.record["ranks"]}
    assert 25 <= count <= 50
    assert done.record["samples"] == count * 2 * done.record["case"]["batch_per_device"]


def test_a_timed_region_never_has_fewer_steps_than_asked_for(toy: Bench) -> None:
    options = {"warmup_steps": 1, "timed_steps": 3, "timed_seconds": 1}
    record = toy.run("exact,sleep=0.6", **options).record
    assert len(record["ranks"][0]["step_seconds"]) == 3
