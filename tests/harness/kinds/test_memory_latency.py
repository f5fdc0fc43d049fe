"""A chain of pointers through real memory: every load is made, and sizes are correct."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.kinds import memory_latency
from harness.measuring.micro import host_memory

from ...bench import Bench
from ..bare import WITHOUT_FRAMEWORK
from ..validity import assert_valid


def test_each_working_set_has_a_latency_and_the_slowest_device_s_counts(toy: Bench) -> None:
    parameters = {"largest_bytes": 2**20, "blocks": 2, "block_seconds": 0.002}
    options: dict[str, Any] = {
        **WITHOUT_FRAMEWORK,
        "kind": "memory_latency",
        "parameters": parameters,
    }
    record = toy.run("", **options, devices_per_node=2).record
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    sizes = [4096 << power for power in range(9)]
    for size in sizes:
        slowest = 0.0
        for rank in record["ranks"]:
            (block,) = (block for block in rank["blocks"] if block["at"] == {"bytes": size})
            each = 1e9 * np.median(block["seconds"]) / block["operations"]
            slowest = max(slowest, float(each))
        metric = record["metrics"][f"latency at bytes {size}"]
        assert metric["value"] == pytest.approx(slowest)
    assert record["metrics"]["memory_latency"]["value"] == pytest.approx(slowest)


def chain(lines: int = 64) -> tuple[Any, Any]:
    room = host_memory.aligned(8 * lines)
    random = np.random.RandomState(1)
    return memory_latency.Chain(host_memory.compiled(), room, 64 * lines, random), room


def test_a_chain_leads_once_through_every_line() -> None:
    _, room = chain(64)
    base, place = room.ctypes.data, room.ctypes.data
    seen = []
    for _ in range(64):
        seen.append((place - base) // 64)
        place = int(room.view(np.int64)[(place - base) // 8])
    assert place == base, "it does not close"
    assert sorted(seen) == list(range(64))
    assert np.abs(np.diff(seen)).mean() > 10, "the next line is always near: it can be fetched"


@pytest.mark.parametrize("steps", [0, 63, 1000])
def test_it_ends_where_so_many_steps_lead(steps: int) -> None:
    held, _ = chain()
    held.run(steps)
    held.run(7)
    held.check()


def test_a_step_that_was_left_out_is_found() -> None:
    held, room = chain()
    room.view(np.int64)[:] = np.roll(room.view(np.int64), 8)  # every line leads to a wrong one
    held.run(10)
    with pytest.raises(Mismatch, match="10 steps through 64 lines ended"):
        held.check()


def test_working_sets_double_up_to_the_largest() -> None:
    assert memory_latency.working_sets(4096) == [4096]
    assert memory_latency.working_sets(16384) == [4096, 8192, 16384]
    assert memory_latency.working_sets(20000) == [4096, 8192, 16384, 19968]
    assert memory_latency.working_sets(10) == [4096]
