"""Gradient all-reduce alone: messages, duration, and cost."""

from __future__ import annotations

from typing import Any

import pytest
from harness.adapter import AllReduce
from harness.measuring import after_window

from ...bench import Bench
from ..numpy_adapter import Numpy
from ..validity import assert_valid

TWO = {"devices_per_node": 2}


def test_it_is_timed_behind_the_window_in_the_sizes_of_the_gradients(toy: Bench) -> None:
    record = toy.run("exact,all_reduce=0.05,sleep=0.2", **TWO).record
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    for rank in record["ranks"]:
        actual = rank["gradient_all_reduce"]
        assert (actual["reason"], actual["bytes"]) == ("", [16]), "of two weights in float64"
        assert actual["seconds"] == pytest.approx([0.05] * len(actual["seconds"]), rel=0.01)
        assert len(actual["seconds"]) == len(record["ranks"][0]["gradient_all_reduce"]["seconds"])


def test_a_framework_that_does_not_tell_its_messages_says_so_at_no_cost(toy: Bench) -> None:
    record = toy.run("secretive", **TWO).record
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    reason = "the toy keeps its messages to itself"
    for rank in record["ranks"]:
        assert rank["gradient_all_reduce"] == {"reason": reason, "bytes": [], "seconds": []}


class Wire(Numpy):
    """Adapter that notes its messages; every other rank sends the same."""

    def __init__(self) -> None:
        super().__init__(ranks=2)
        self.arrays: list[int] = []
        self.sent: list[int] = []

    def gradient_messages(self) -> list[int]:
        return [400, 10, 400]

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        assert not array.any(), "sums of sums grow"
        self.arrays.append(array.nbytes)
        return AllReduce(lambda: self.sent.append(array.nbytes), lambda: array)

    def all_reduce(self, value: float) -> float:
        return 2 * value


@pytest.mark.parametrize(("seconds", "rounds"), [(1e6, after_window.ROUNDS), (0.0, 1)])
def test_rounds_send_every_message_and_end_with_their_share_of_the_run(
    seconds: float, rounds: int
) -> None:
    wire = Wire()
    actual = after_window.time_all_reduce(wire, seconds)
    assert actual["bytes"] == [400, 10, 400]
    assert len(actual["seconds"]) == rounds
    assert wire.sent == [400, 12, 400] * (1 + rounds), "a first round compiles and connects"
    assert sorted(wire.arrays) == [12, 400], "an array for each size, in whole numbers of floats"
