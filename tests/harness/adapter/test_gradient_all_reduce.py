"""Gradient all-reduce alone: messages, duration, and cost."""

from __future__ import annotations

import pytest

from ...bench import Bench
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
