"""Bandwidth and latency of real memory: counted as STREAM counts, every load made, verified."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.kinds import memory, memory_latency

from ...bench import Bench
from ..bare import WITHOUT_FRAMEWORK
from ..validity import assert_outcome

#: Bytes that a kernel moves per element, from STREAM's own table.
MOVED = {"copy": 16, "scale": 16, "add": 24, "triad": 24}


def test_each_kernel_moves_what_stream_says(toy: Bench) -> None:
    elements = 100000
    record = toy.run(
        "",
        **WITHOUT_FRAMEWORK,
        kind="memory",
        devices_per_node=2,
        parameters={"array_bytes": 8 * elements, "rounds": 4},
    ).record
    assert_outcome(record, "ok")
    for kernel, moved in MOVED.items():
        rates = []
        for rank in record["ranks"]:
            (block,) = (block for block in rank["blocks"] if block["at"] == {"kernel": kernel})
            assert len(block["seconds"]) == 3, "the first round is not counted"
            rates.append(1e-9 * moved * elements / float(np.median(block["seconds"])))
        assert record["metrics"][kernel]["value"] == pytest.approx(sum(rates)), "of all devices"


def test_a_device_of_several_cores_uses_them_all(toy: Bench) -> None:
    parameters = {"array_bytes": 800000, "rounds": 2}
    record = toy.run(
        "", **WITHOUT_FRAMEWORK, kind="memory", cores_per_device=2, parameters=parameters
    ).record
    assert record["status"] == "ok", record["reason"]
    assert record["ranks"][0]["threads"] == 2


def streamed(elements: int = 5000, threads: int = 2) -> tuple[Any, Any]:
    """Return a STREAM after three rounds, and its initial array a."""
    random = np.random.RandomState(1)
    held = memory.Stream(memory.compiled(), elements, threads, random)
    before = held.a.copy()
    for _ in range(3):
        for kernel in memory.MOVED:
            held.run(kernel)
    return held, before


def test_one_wrong_element_is_found() -> None:
    for name in ("a", "b", "c"):
        held, before = streamed()
        getattr(held, name)[17] *= 1 + 1e-9
        with pytest.raises(Mismatch, match=f"1 of 5000 elements of {name} are wrong"):
            held.check(before)


def test_arrays_are_four_times_the_last_cache_and_an_eighth_of_the_free_memory_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fail for a virtual machine that reports the caches of its host."""
    monkeypatch.setattr(memory, "largest_cache", lambda: 32 << 20)
    assert memory.default_bytes("array_bytes") == 128 << 20
    monkeypatch.setattr(memory, "available_bytes", lambda: 96 << 20)
    assert memory.default_bytes("array_bytes", 3) == 4 << 20
    case = SimpleNamespace(devices_per_node=1)
    workload = SimpleNamespace(parameters={"largest_bytes": 0}, case=case)
    context: Any = SimpleNamespace(fields={}, workload=workload)
    with pytest.raises(Mismatch, match="set largest_bytes to at most 12582912"):
        memory_latency.MemoryLatency().measure(context)
    monkeypatch.setattr(memory, "largest_cache", lambda: 0)
    with pytest.raises(Mismatch, match="does not report the size of the caches: set array_bytes"):
        memory.default_bytes("array_bytes")


# ---- latency -------------------------------------------------------------------------------------


def test_each_working_set_has_a_latency_and_the_slowest_device_s_counts(toy: Bench) -> None:
    parameters = {"largest_bytes": 2**20, "blocks": 2, "block_seconds": 0.002}
    options: dict[str, Any] = {
        **WITHOUT_FRAMEWORK,
        "kind": "memory_latency",
        "parameters": parameters,
    }
    record = toy.run("", **options, devices_per_node=2).record
    assert_outcome(record, "ok")
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
    room = memory.aligned(8 * lines)
    random = np.random.RandomState(1)
    return memory_latency.Chain(memory.compiled(), room, 64 * lines, random), room


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


def test_it_ends_where_so_many_steps_lead() -> None:
    held, room = chain()
    for steps in (1000, 7):
        held.run(steps)
        held.check()
    held, room = chain()
    # every cache line leads to a wrong one
    room.view(np.int64)[:] = np.roll(room.view(np.int64), 8)
    held.run(10)
    with pytest.raises(Mismatch, match="10 steps through 64 lines ended"):
        held.check()
