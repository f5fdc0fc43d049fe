"""Seconds of an all-reduce, by hand-computed numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.fields.steps import (
    GradientAllReduce,
    all_reduce_rate,
    gradient_all_reduce_of,
)

from ..saved_records import record, save


def rank(small: list[float], large: list[float], parameters: int | None = 1_000_000) -> Any:
    told = {} if parameters is None else {"trainable_parameters": parameters}
    return {
        "preflight": [
            {"bytes": 1000, "seconds": small},
            {"bytes": 1_001_000, "seconds": large},
        ],
        **told,
    }


def test_an_all_reduce_takes_the_median_of_the_slowest_rank() -> None:
    ranks = [rank([0.001, 0.5, 0.001], [0.011] * 3), rank([0.002] * 3, [0.012, 0.012, 9.0])]
    assert all_reduce_rate(ranks) == pytest.approx(1.001e6 / 0.012 / 1e9)


@pytest.mark.parametrize(
    "ranks",
    [
        [],
        [{"trainable_parameters": 5}],
        [rank([0.1], [0.2]), {"trainable_parameters": 5}],
        [{"preflight": [], "trainable_parameters": 5}],
        [rank([], [])],
        [rank([0.0], [0.0])],
    ],
)
def test_without_times_nothing_is_known(ranks: list[Any]) -> None:
    assert all_reduce_rate(ranks) is None


def test_a_record_reports_its_all_reduces(tmp_path: Path) -> None:
    made = record()
    for one in made["ranks"]:
        one |= rank([0.002], [0.012])
    save(tmp_path, "c/r1.json", made)
    (actual,) = record_sets.load(tmp_path).runs
    assert actual.all_reduce_rate == all_reduce_rate(made["ranks"])
    made["ranks"][0]["preflight"][1]["second"] = []
    save(tmp_path, "c/r1.json", made)
    assert not record_sets.load(tmp_path).runs, "the schema allows no other field"


def exchanged(*seconds: float, reason: str = "") -> Any:
    sizes = [] if reason else [4000, 16]
    return {"gradient_all_reduce": {"reason": reason, "bytes": sizes, "seconds": [*seconds]}}


def test_a_round_of_the_gradients_takes_as_long_as_the_slowest_rank() -> None:
    ranks = [exchanged(0.1, 0.5, 0.1), exchanged(0.2, 0.2, 0.3)]
    assert gradient_all_reduce_of(ranks) == GradientAllReduce((0.2, 0.5, 0.3), 2, (4000, 16))


@pytest.mark.parametrize(
    "ranks", [[], [{}, {}], [exchanged(0.1), {}], [exchanged(reason="it does not tell")] * 2]
)
def test_without_rounds_of_all_ranks_nothing_is_known_of_the_gradients(ranks: list[Any]) -> None:
    assert gradient_all_reduce_of(ranks) is None


def test_a_record_reports_its_gradients_and_an_older_one_does_not(tmp_path: Path) -> None:
    made = record()
    save(tmp_path, "c/r1.json", made)
    assert record_sets.load(tmp_path).runs[0].gradient_all_reduce is None
    for one in made["ranks"]:
        one |= exchanged(0.25)
    save(tmp_path, "c/r1.json", made)
    (run,) = record_sets.load(tmp_path).runs
    assert run.gradient_all_reduce == GradientAllReduce((0.25,), 2, (4000, 16))
