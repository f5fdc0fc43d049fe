"""Micro-benchmarks on the toy framework: counts, and detection of mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.kinds import collective as collective_kind
from harness.measuring import operands

from ...bench import Bench, Finished
from ..bare import BARE, LATE, QUICK, TICKS, values
from ..validity import assert_outcome

QUICK_ARRAYS = {"elements": 1000, **QUICK}
MATMUL = {**BARE, "kind": "matmul"}
COLLECTIVE = {**BARE, "kind": "collective", "precision": None, "devices_per_node": 2}


def matmul(toy: Bench, behaviour: str = "", **parameters: object) -> Finished:
    settings = {"shapes": "64x32x16 4x8x16x8", **QUICK, **parameters}
    return toy.run(behaviour, **MATMUL, parameters=settings)


def collective(toy: Bench, behaviour: str = "", **parameters: object) -> Finished:
    settings = {"operation": "all_reduce", "largest_bytes": 64, **QUICK, **parameters}
    return toy.run(behaviour, **COLLECTIVE, parameters=settings)


def is_rate(actual: float, exact: float) -> bool:
    """Return whether a rate is the device's; reading its clock only adds time."""
    return (1 - TICKS) * exact < actual <= 1.0001 * exact


def test_the_rate_of_a_matmul_counts_two_operations_per_term(toy: Bench) -> None:
    """Fail if a matmul's rate does not count two operations per term; each takes 10 ms here."""
    record = matmul(toy, "exact,operation=0.01", block_seconds=0.1).record
    assert_outcome(record, "ok")
    rates = values(record, "rate")
    assert is_rate(rates[1, 64, 32, 16], 2 * 64 * 32 * 16 / 0.01 * 1e-12)
    assert is_rate(rates[4, 8, 16, 8], 4 * 2 * 8 * 16 * 8 / 0.01 * 1e-12)
    assert record["metrics"]["highest_rate"]["value"] == max(rates.values())
    assert record["case"]["model"] is None
    assert record["ranks"][0]["blocks"][0]["at"] == {"batch": 1, "m": 64, "k": 32, "n": 16}


def test_devices_multiply_together_and_the_slowest_counts(toy: Bench) -> None:
    parameters = {"shapes": "64x32x16", **QUICK}
    record = toy.run(
        "exact,operation=0.005", **MATMUL, devices_per_node=2, parameters=parameters
    ).record
    assert record["status"] == "ok", record["reason"]
    each = [
        2 * 64 * 32 * 16 * 1e-12 * block["operations"] / np.median(block["seconds"])
        for block in (rank["blocks"][0] for rank in record["ranks"])
    ]
    assert values(record, "rate")[1, 64, 32, 16] == pytest.approx(min(each))


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("exact,unsynchronised,operation=0.0001", LATE),
        ("one_more", "elements of a matmul of the shape (1, 1) have a"),
        ("empty", "elements of a matmul of the shape (1, 1) have a relative error of 1 "),
        ("overflow", "elements of a matmul of the shape (1, 1) have a relative error of inf "),
    ],
)
def test_a_wrong_matmul_is_found(toy: Bench, behaviour: str, reason: str) -> None:
    record = matmul(toy, behaviour, shapes="1x8x1").record
    assert_outcome(record, "failed", reason)


def test_a_wrong_shape_is_said_before_anything_starts(toy: Bench) -> None:
    done = matmul(toy, shapes="64x32")
    assert (done.status, done.record) == (2, None)
    assert "--parameter shapes: found '64x32'; allowed: must be shapes like" in done.stderr


def test_a_launch_takes_as_long_as_its_operation(toy: Bench) -> None:
    parameters = {"elements": 1, **QUICK, "block_seconds": 0.1}
    record = toy.run("exact,operation=0.002", **BARE, kind="launch", parameters=parameters).record
    assert_outcome(record, "ok")
    assert record["metrics"]["time"]["value"] == pytest.approx(2000, rel=TICKS)
    rate = record["metrics"]["operations_per_second"]["value"]
    assert rate == pytest.approx(1e6 / record["metrics"]["time"]["value"])


def test_an_elementwise_operation_moves_every_array_once(toy: Bench) -> None:
    parameters = {"elements": 1000, **QUICK, "block_seconds": 0.1}
    options: dict[str, Any] = {**BARE, "kind": "elementwise", "parameters": parameters}
    record = toy.run("exact,operation=0.01", **options).record
    assert record["status"] == "ok", record["reason"]
    assert is_rate(record["metrics"]["add"]["value"], 3 * 4000 / 0.01 * 1e-9)
    assert is_rate(record["metrics"]["exp"]["value"], 2 * 4000 / 0.01 * 1e-9)
    assert is_rate(record["metrics"]["scale"]["value"], 2 * 4000 / 0.01 * 1e-9)
    assert is_rate(record["metrics"]["triad"]["value"], 3 * 4000 / 0.01 * 1e-9)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("one_more", "Mismatch: 1 of 1000 results of add in float32 are wrong"),
        ("wrong_triad", "of 1000 results of triad in float32 are wrong"),
    ],
)
def test_a_wrong_element_is_found(toy: Bench, behaviour: str, reason: str) -> None:
    options: dict[str, Any] = {**BARE, "kind": "elementwise", "parameters": QUICK_ARRAYS}
    assert_outcome(toy.run(behaviour, **options).record, "failed", reason)


def test_a_collective_is_right_and_counted_as_nccl_tests_counts(toy: Bench) -> None:
    """``test_contract.py`` runs all collectives in real frameworks."""
    factor = 0.5  # bus bandwidth over algorithm bandwidth, for two ranks
    record = collective(toy, operation="all_gather", largest_bytes=32).record
    assert_outcome(record, "ok")
    slowest = values(record, "time")
    assert list(slowest) == [(8,), (16,), (32,)]
    bandwidth = values(record, "bus_bandwidth")
    for (size,), microseconds in slowest.items():
        algorithm = values(record, "algorithm_bandwidth")[(size,)]
        assert algorithm == pytest.approx(size / (1000 * microseconds))
        assert bandwidth[(size,)] == pytest.approx(factor * algorithm)
    averages = [
        sum(
            1e-9 * factor * size * block["operations"] / np.median(block["seconds"])
            for (size,), block in zip(slowest, rank["blocks"], strict=True)
        )
        / 3
        for rank in record["ranks"]
    ]
    average = record["metrics"]["average_bus_bandwidth"]["value"]
    assert average == pytest.approx(min(averages))


@pytest.mark.parametrize(
    ("behaviour", "operation", "reason"),
    [
        (
            "one_more,spoil_rank=1",
            "all_reduce",
            "rank 1: Mismatch: before it was timed: all_reduce",
        ),
        ("empty,spoil_rank=0", "all_gather", "rank 0: Mismatch: before it was timed: all_gather"),
        ("overflow,spoil_rank=1", "broadcast", "inf, not"),
    ],
)
def test_one_rank_s_wrong_result_is_found(
    toy: Bench, behaviour: str, operation: str, reason: str
) -> None:
    record = collective(toy, behaviour, operation=operation).record
    assert_outcome(record, "failed", reason)


def test_a_collective_that_a_framework_lacks_is_unsupported_with_its_own_reason(toy: Bench) -> None:
    record = collective(toy, "no_collective", operation="all_to_all").record
    message = "toy has no all_to_all on a CPU: float32: the toy box has no such thing"
    assert_outcome(record, "unsupported", message)


def test_one_device_has_no_collective(toy: Bench) -> None:
    options = {**COLLECTIVE, "devices_per_node": 1}
    record = toy.run("", **options, parameters={"operation": "all_reduce"}).record
    assert_outcome(record, "unsupported", "one device has no other to communicate with")


def test_factors_are_those_of_nccl_tests() -> None:
    of_eight = {"all_reduce": 1.75, **dict.fromkeys(("broadcast", "reduce", "send_receive"), 1.0)}
    of_eight.update(dict.fromkeys(("reduce_scatter", "all_gather", "all_to_all"), 0.875))
    assert {name: collective_kind.factor(name, 8) for name in of_eight} == of_eight
    assert collective_kind.factor("all_reduce", 2) == 1.0


def test_sizes_are_whole_elements_of_every_part() -> None:
    assert collective_kind.sizes("all_reduce", "float32", 3, 64) == [8, 16, 32, 64]
    assert collective_kind.sizes("all_gather", "float32", 3, 64) == [12, 24, 60]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sums_of_sums_stay_below_what_the_dtype_holds(dtype: str) -> None:
    for ranks in (2, 3, 8, 512):
        runs = operands.most_in_a_row("all_reduce", dtype, ranks)
        value = float(operands.highest_value(dtype, ranks))
        assert value * float(ranks) ** runs <= float(np.finfo(dtype).max)
