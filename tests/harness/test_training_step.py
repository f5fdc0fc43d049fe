"""Fields of a record about a training step: messages, micro-steps, recompilations, and work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.adapter import Variable
from harness.measuring import steps
from harness.measuring.model import sample_work

from ..bench import Bench
from .validity import assert_outcome


def compiling(*reasons: str) -> Any:
    """Return an adapter whose compiler compiled anew for these ``reasons``."""
    return SimpleNamespace(
        case=SimpleNamespace(compiler="inductor"),
        recompilations=lambda: list(reasons),
        compiled=lambda: {"frames": 9, "frames_compiled": 8},
    )


def test_what_is_compiled_in_the_timed_region_is_counted_with_what_is_left_to_eager_mode() -> None:
    fields: dict[str, Any] = {"compiled": {"frames": 2, "frames_compiled": 2}}
    steps.note_recompilations(compiling("n == 1"), 1, fields)
    assert fields == {"compiled": {"frames": 2, "frames_compiled": 2}}
    steps.note_recompilations(compiling("n == 1", "n == 2", "n == 3", "n == 3"), 1, fields)
    assert fields["compiled"] == {
        "frames": 9,
        "frames_compiled": 8,
        "recompiled_in_window": {"count": 3, "reasons": ["n == 2", "n == 3"]},
    }


def test_a_table_with_a_row_for_each_token_is_not_read_whole() -> None:
    shapes = {"tokens": (50, 8), "hidden": (8, 32), "head": (8, 50), "filter": (3, 3, 4, 64)}
    state = {name: Variable(np.zeros(shape)) for name, shape in shapes.items()}
    adapter: Any = SimpleNamespace(state=lambda: state, multiply_adds=lambda: 40)
    tokens, labels = np.array([[0, 49, 2], [1, 3, 5]]), np.array([60, 1])
    work = sample_work(adapter, [tokens, labels], 2)
    assert work["multiply_adds"] == 20
    assert work["tokens"] == 3
    assert work["read_parameters"] == 8 * 32 + 3 * 3 * 4 * 64
    images = sample_work(adapter, [np.zeros((2, 3, 4, 4)), labels], 2)
    assert images["tokens"] is None
    assert images["read_parameters"] == 50 * 8 + 8 * 32 + 8 * 50 + 3 * 3 * 4 * 64


def test_a_step_has_the_samples_of_all_its_micro_steps(toy: Bench) -> None:
    done = toy.run("secretive", devices_per_node=2, accumulation=3)
    record = done.record
    assert done.status == 0, done.stderr
    assert_outcome(record, "ok")
    assert (record["case"]["accumulation"], record["case"]["batch_per_device"]) == (3, 4)
    assert record["samples"] == 4 * 3 * 2 * 5
    throughput = record["metrics"]["throughput"]["value"]
    assert throughput == pytest.approx(record["samples"] / record["window_seconds"])
    reason = "the toy keeps its messages to itself"
    for rank in record["ranks"]:
        assert rank["gradient_all_reduce"] == {"reason": reason, "bytes": [], "seconds": []}


def test_it_is_timed_behind_the_window_in_the_sizes_of_the_gradients(toy: Bench) -> None:
    record = toy.run("exact,all_reduce=0.05,sleep=0.2", devices_per_node=2).record
    assert_outcome(record, "ok")
    for rank in record["ranks"]:
        actual = rank["gradient_all_reduce"]
        assert (actual["reason"], actual["bytes"]) == ("", [16]), "of two weights in float64"
        assert actual["seconds"] == pytest.approx([0.05] * len(actual["seconds"]), rel=0.01)
        assert len(actual["seconds"]) == len(record["ranks"][0]["gradient_all_reduce"]["seconds"])
