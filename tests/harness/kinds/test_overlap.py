"""Matmuls and collectives together: the hidden share, unfinished work, and shared matmuls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch, Unsupported
from harness.kind import combined
from harness.kinds import overlap, sharded_matmul
from harness.measuring import operands
from harness.measuring.operands import plain_shapes, shapes_of
from harness.operations import CollectiveOperation, MatmulShape, Operation, side_by_side

from ...bench import Bench, Finished
from ..bare import BARE, values
from ..validity import assert_outcome, assert_valid

#: Toy behaviour: seconds of each matmul, and of an all-reduce, on a clock without lateness.
SLOW = "exact,operation=0.03"
ANY_SUBJECT: Any = None  # metrics do not depend on the workload


def overlapped(toy: Bench, behaviour: str = SLOW, **parameters: object) -> Finished:
    settings = {"shape": "8x8x8", "matmuls": 3, "message_bytes": 64, "blocks": 3,
             "block_seconds": 0.02, **parameters}  # fmt: skip
    options: dict[str, Any] = {**BARE, "kind": "overlap", "devices_per_node": 2}
    return toy.run(behaviour, **options, parameters=settings)


def figures(record: Any) -> dict[str, float]:
    assert record["status"] == "ok", record["reason"]
    return {name: metric["value"] for name, metric in record["metrics"].items()}


def test_an_all_reduce_during_matmuls_is_hidden(toy: Bench) -> None:
    record = overlapped(toy).record
    assert_valid(record)
    actual = figures(record)
    assert actual["compute_time"] == pytest.approx(90, rel=0.01)
    assert actual["communication_time"] == pytest.approx(30, rel=0.01)
    assert actual["both_time"] == pytest.approx(90, rel=0.01)
    assert actual["hidden_share"] == pytest.approx(100, abs=1)
    for rank in record["ranks"]:
        assert [block["at"]["part"] for block in rank["blocks"]] == [*overlap.PARTS]
        assert all(len(block["seconds"]) == 3 for block in rank["blocks"]), "raw blocks are kept"
        assert {block["matmuls"] for block in rank["blocks"]} == {3}


def test_one_behind_the_other_hides_nothing_and_contention_is_no_failure(toy: Bench) -> None:
    actual = figures(overlapped(toy, f"{SLOW},one_at_a_time,hindered=0.03").record)
    assert actual["hidden_share"] == pytest.approx(-100, abs=1)


def test_the_number_of_matmuls_is_chosen_to_last_as_long_as_the_all_reduce(toy: Bench) -> None:
    record = overlapped(toy, matmuls=0).record
    figures(record)
    assert {block["matmuls"] for rank in record["ranks"] for block in rank["blocks"]} == {1}


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (f"forgetful,{SLOW}", "compute alone"),
        (
            f"one_more,spoil_rank=1,{SLOW}",
            "before it was timed: all_reduce next to matmul 8x8x8 is",
        ),
    ],
)
def test_what_was_not_done_when_the_clock_was_read_is_found(
    toy: Bench, behaviour: str, reason: str
) -> None:
    record = overlapped(toy, behaviour).record
    assert_outcome(record, "failed", reason)


def rank_of(compute: float, communication: float, both: float) -> dict[str, Any]:
    """Return a rank's entry of three blocks; seconds are of two runs in each."""
    parts = zip(overlap.PARTS, (compute, communication, both), strict=True)
    return {
        "blocks": [
            {"at": {"part": part}, "operations": 2, "seconds": [2 * entry, 2 * entry, 9.0]}
            for part, entry in parts
        ]
    }


def metrics_of(*ranks: dict[str, Any]) -> dict[str, float | None]:
    kind = overlap.Overlap()
    return {name: combined(metric, ranks) for name, metric in kind.metrics(ANY_SUBJECT).items()}


@pytest.mark.parametrize(
    ("seconds", "share"),
    [((2, 1, 2), 100), ((2, 1, 3), 0), ((2, 1, 2.5), 50), ((1, 4, 4.5), 50), ((2, 1, 4), -100)],
)
def test_the_share_is_of_the_shorter(seconds: tuple[float, float, float], share: float) -> None:
    assert metrics_of(rank_of(*seconds))["hidden_share"] == pytest.approx(share)


@pytest.mark.parametrize("order", [1, -1])
def test_the_hidden_share_follows_from_the_reported_times(order: int) -> None:
    """The share is computed from the slowest times; each rank's own times give -100 % and 50 %."""
    ranks = [rank_of(1, 2, 4), rank_of(4, 1, 4.5)][::order]
    actual = metrics_of(*ranks)
    times = [actual[f"{part}_time"] for part in overlap.PARTS]
    assert times == pytest.approx([4000, 2000, 4500])
    assert actual["hidden_share"] == pytest.approx(100 * (4000 + 2000 - 4500) / 2000)


def test_an_element_wise_product_runs_next_to_the_all_reduce(toy: Bench) -> None:
    """SuperBench's computation-communication-overlap begins with an element-wise product."""
    figures(overlapped(toy, operation="multiply", shape="8x4x16").record)


def test_both_together_take_no_less_than_each_alone() -> None:
    blocks = {"compute": [1.0, 1.1], "communication": [0.5, 0.5], "both": [0.95, 0.91]}
    overlap.check_longer(blocks, 1)
    with pytest.raises(Mismatch, match=r"took 0\.85 s at most, and compute alone 1 s at least"):
        overlap.check_longer({**blocks, "both": [0.8, 0.85]}, 1)
    with pytest.raises(Mismatch, match="and communication alone 2 s at least"):
        overlap.check_longer({**blocks, "communication": [2.0, 3.0]}, 1)
    # 4,000 messages: next to matmuls, each finds the other rank awake
    overlap.check_longer({**blocks, "both": [0.8, 0.85]}, 4000)


def test_a_message_is_set_back_before_its_sums_overflow(toy: Bench) -> None:
    """SuperBench's is added to itself 204,800 times."""
    record = overlapped(toy, "exact,operation=0.00001", block_seconds=1, matmuls=1).record
    figures(record)
    most = operands.most_in_a_row("all_reduce", "float32", 2)
    counts = {block["operations"] for rank in record["ranks"] for block in rank["blocks"]}
    assert counts == {most}, "a block of a second has more than fit into float32"


def test_an_all_reduce_starts_before_the_matmuls_and_is_awaited_after_them() -> None:
    """SuperBench's sharding-matmul waits between the two."""
    asked: list[str] = []

    def noting(name: str) -> Callable[[], None]:
        return lambda: asked.append(name)

    operation = Operation(noting("product"), noting("read"), "float32")
    reduced = CollectiveOperation(noting("reset"), noting("all-reduce"), noting("read"))
    side_by_side(operation, reduced, 2).both()
    assert asked == ["all-reduce", "product", "product"]
    asked.clear()
    started = reduced._replace(start=lambda: noting("waited"))
    side_by_side(operation, started, 1).both()
    assert asked == ["product", "waited"]


def shared(toy: Bench, behaviour: str, **parameters: object) -> Finished:
    settings = {"shapes": "8x32x16", "blocks": 2, "block_seconds": 0.02, **parameters}
    options: dict[str, Any] = {**BARE, "kind": "sharded_matmul", "devices_per_node": 2}
    return toy.run(behaviour, **options, parameters=settings)


@pytest.mark.parametrize("sharded", ["inner", "columns"])
def test_the_rate_counts_the_whole_matmul_and_the_slowest_rank(toy: Bench, sharded: str) -> None:
    record = shared(toy, "exact,operation=0.01", sharded=sharded).record
    assert_outcome(record, "ok")
    at = 8, 32, 16
    seconds = {
        part: max(
            np.median(block["seconds"]) / block["operations"]
            for rank in record["ranks"]
            for block in rank["blocks"]
            if block["at"]["part"] == part
        )
        for part in sharded_matmul.PARTS
    }
    for part, longest in seconds.items():
        assert values(record, f"{part}_time")[at] == pytest.approx(1e3 * longest)
    assert seconds[sharded_matmul.MATMUL] >= 0.01
    assert seconds["both"] >= 0.02, "communication begins behind the matmul"
    operations = 2 * 8 * 32 * 16
    assert values(record, "rate")[at] == pytest.approx(1e-12 * operations / seconds["both"])
    rate = values(record, "matmul_rate")[at]
    assert rate == pytest.approx(1e-12 * operations / seconds[sharded_matmul.MATMUL])
    assert record["metrics"]["highest_rate"]["value"] == values(record, "rate")[at]


@pytest.mark.parametrize(("sharded", "after"), [("inner", "reduce"), ("columns", "gather")])
def test_what_is_wrong_is_found(toy: Bench, sharded: str, after: str) -> None:
    record = shared(toy, "wrong_shard=1", sharded=sharded).record
    assert_outcome(record, "failed", f"before it was timed, after its all_{after}: 256 elements")


def test_parts_are_equal_and_shapes_have_no_batch() -> None:
    shape = MatmulShape(1, 8, 6, 9)
    assert sharded_matmul.share_of(shape, "inner", 1, 3) == slice(2, 4)
    with pytest.raises(Unsupported, match="2 ranks cannot have equal parts of 8x6x9: n is 9"):
        sharded_matmul.share_of(shape, "columns", 0, 2)
    assert shapes_of(plain_shapes("8x6x9 1x2x2x2")) == [shape, MatmulShape(1, 2, 2, 2)]
    with pytest.raises(ValueError, match="without a batch"):
        plain_shapes("4x8x6x9")
