"""Seconds of an all-reduce, by hand-computed numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.fields.communication import (
    GradientAllReduce,
    all_reduce_of,
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


def test_gradients_lie_on_the_line_through_both_sizes() -> None:
    # 1 MB more takes 10 ms more, so 4 MB take 40 ms; latency is 2 ms less 1000 bytes' 10 us
    actual = all_reduce_of([rank([0.002], [0.012])])
    assert actual is not None
    assert actual.gradient_seconds == pytest.approx(0.002 - 0.00001 + 0.04)
    assert actual.gbytes_per_second == pytest.approx(1.001e6 / 0.012 / 1e9)


def test_an_all_reduce_takes_the_median_of_the_slowest_rank() -> None:
    ranks = [rank([0.001, 0.5, 0.001], [0.011] * 3), rank([0.002] * 3, [0.012, 0.012, 9.0])]
    assert all_reduce_of(ranks) == all_reduce_of([rank([0.002], [0.012])])


def test_a_latency_below_zero_is_none() -> None:
    actual = all_reduce_of([rank([1e-9], [1.0], parameters=10)])
    assert actual is not None
    assert actual.gradient_seconds == pytest.approx(40 / 1e6, rel=1e-6)


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
    assert all_reduce_of(ranks) is None


@pytest.mark.parametrize("ranks", [[rank([0.2], [0.2])], [rank([0.1], [0.2], None)]])
def test_without_a_line_or_parameters_only_the_rate_is_known(ranks: list[Any]) -> None:
    actual = all_reduce_of(ranks)
    assert actual is not None
    assert actual.gradient_seconds is None
    assert actual.gbytes_per_second == pytest.approx(1.001e6 / 0.2 / 1e9)


def test_a_record_reports_its_all_reduces(tmp_path: Path) -> None:
    made = record()
    for one in made["ranks"]:
        one |= rank([0.002], [0.012])
    save(tmp_path, "c/r1.json", made)
    (actual,) = record_sets.load(tmp_path).runs
    assert actual.all_reduce == all_reduce_of(made["ranks"])
    before = record_sets.fingerprint(record_sets.load(tmp_path))
    made["ranks"][0]["preflight"][1]["seconds"] = [0.013]
    save(tmp_path, "c/r1.json", made)
    assert record_sets.fingerprint(record_sets.load(tmp_path)) != before, "tables would stay stale"
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
