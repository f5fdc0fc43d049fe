"""Copies to a device and back, and between two: none on a CPU; elsewhere doubles of devices."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import nvml
from harness.adapter import Case, Mismatch, RankContext, Unsupported
from harness.kind import Context, Workload, combined
from harness.kinds import device_pairs, transfer
from harness.operations import Operation
from harness.report import Report

from ...bench import Bench
from ...frameworks.toy.plain import wait_until
from ..bare import BARE
from ..machine.fake_machine import GPU, VARIABLES, FakeNvml

#: Duration of a copy.
COPY_SECONDS = 5e-4


class CopyingDevice:
    """Device whose copies take COPY_SECONDS.
    ``late``: nothing waits for them; ``lost``: the last number does not arrive."""

    def __init__(self, late: bool = False, lost: bool = False) -> None:
        self.rank_context = RankContext(0, 0, ["127.0.0.1:1"], "cuda", 1, 0)
        self.late, self.lost, self.done_at = late, lost, 0.0

    def all_reduce(self, value: float) -> float:
        return value

    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        return self.copy(array, COPY_SECONDS)

    def copy(self, array: Any, seconds: float) -> Operation:
        arrived = np.where(np.arange(array.size) < array.size - self.lost, array, np.float32(0))

        def run() -> None:
            self.done_at = max(self.done_at, time.perf_counter()) + seconds

        return Operation(run, lambda: (wait_until(self.done_at), arrived)[1], "float32")

    def synchronize(self) -> None:
        if not self.late:
            wait_until(self.done_at)

    def reset_peak_device_memory(self) -> None:
        """Do nothing: the toy has no device memory."""


PARAMETERS = {
    "pinned": "no", "largest_bytes": 2**17, "blocks": 2, "block_seconds": 0.01
}  # fmt: skip


def copied(
    folder: Path, adapter: Any = None, **parameters: object
) -> tuple[transfer.Transfer, Workload, dict[str, Any]]:
    case = Case("toy", "", "inference", 1, 1, 1, "", "none", None)
    workload = Workload(case, {}, {**PARAMETERS, **parameters}, 1, None, 1)
    adapter = adapter or CopyingDevice()
    report = Report(str(folder), 0, "here")
    kind = transfer.Transfer()
    pinned_to = sorted(os.sched_getaffinity(0))
    kind.measure(Context(workload, adapter.rank_context, adapter, pinned_to, report))
    return kind, workload, report.fields


@pytest.mark.usefixtures("exact_clock")
def test_bandwidth_is_what_arrives_over_the_time_that_it_takes(tmp_path: Path) -> None:
    kind, workload, fields = copied(tmp_path)
    metrics = kind.metrics(workload)
    assert list(metrics)[:3] == [*transfer.DIRECTIONS]
    for size in (2**16, 2**17):
        value = metrics[f"device_to_host_bandwidth at bytes {size}"].rank_value(fields)
        assert value == pytest.approx(size / COPY_SECONDS * 1e-9, rel=0.01)
    assert metrics["host_to_device"].rank_value(fields) == pytest.approx(
        metrics[f"host_to_device_bandwidth at bytes {2**17}"].rank_value(fields)
    )
    assert metrics["pcie_lanes"].rank_value(fields) is None


@pytest.mark.usefixtures("exact_clock")
def test_each_device_has_a_figure_and_the_slowest_counts(tmp_path: Path) -> None:
    kind, workload, fast = copied(tmp_path)
    slow = {
        **fast, "blocks": [{**b, "seconds": [2 * s for s in b["seconds"]]} for b in fast["blocks"]]
    }  # fmt: skip
    two = replace(workload, case=workload.case._replace(devices_per_node=2))
    metrics = kind.metrics(two)
    of_devices = [
        combined(metrics[name], [fast, slow])
        for name in (
            "host_to_device at device gpu-0",
            "host_to_device at device gpu-1",
            "host_to_device",
        )
    ]
    assert of_devices[0] == pytest.approx(2 * (of_devices[1] or 0))
    assert of_devices[2] == of_devices[1]


def test_the_link_to_the_host_is_what_nvml_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = FakeNvml({**GPU, "generation": 5, "lanes": 8})
    monkeypatch.setattr(nvml, "find", lambda variables, n: nvml.Gpus(library, VARIABLES, n))
    kind, workload, fields = copied(tmp_path)
    metrics = kind.metrics(workload)
    reported = {
        name: metrics[name].rank_value(fields) for name in ("pcie_generation", "pcie_lanes")
    }
    assert reported == {"pcie_generation": 5, "pcie_lanes": 8}
    del library.devices[0]["lanes"]
    _, _, fields = copied(tmp_path)
    assert metrics["pcie_lanes"].rank_value(fields) is None, "not told is no zero"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("lost", "host_to_device of 65536 bytes is wrong in 1 of 16384 elements"),
        ("late", r"synchronize\(\) returned before the work was complete"),
    ],
)
@pytest.mark.usefixtures("exact_clock")
def test_what_did_not_arrive_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, reason: str
) -> None:
    monkeypatch.setattr("harness.measuring.blocks.MOST_IN_A_BLOCK", 1000)
    with pytest.raises(Mismatch, match=reason):
        copied(tmp_path, CopyingDevice(**{wrong: True}))


# ---- between two devices -------------------------------------------------------------------------

SIZE, SLOWER = 4000, 4
SLOW = (0, 2)


class Three(CopyingDevice):
    """Three devices; one pair takes four times as long, in both directions."""

    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        slow = {sender, receiver} == {*SLOW}
        return self.copy(array, COPY_SECONDS * (SLOWER if slow else 1))


def workload_of(devices: int, nodes: int = 1) -> Workload:
    case = Case("toy", "", "inference", nodes, devices, 1, "", "none", None)
    return Workload(case, {}, {"bytes": SIZE, "blocks": 2, "block_seconds": 0.01}, 1, None, 1)


def left_by(folder: Path, rank: int, workload: Workload, adapter: Any) -> dict[str, Any]:
    devices = workload.case.devices_per_node
    rank_context = RankContext(rank, rank, ["127.0.0.1:1"] * devices, "cuda", 1, 0)
    report = Report(str(folder), rank, "here")
    device_pairs.DevicePairs().measure(Context(workload, rank_context, adapter, [], report))
    return report.fields


@pytest.mark.usefixtures("exact_clock")
def test_each_pair_is_copied_alone_and_the_slowest_is_reported(tmp_path: Path) -> None:
    workload = workload_of(3)
    ranks = [left_by(tmp_path, rank, workload, Three()) for rank in range(3)]
    assert [len(rank["blocks"]) for rank in ranks] == [6, 0, 0], "the others have to wait"
    metrics = device_pairs.DevicePairs().metrics(workload)
    values = {
        tuple(metric.at.values()): combined(metric, ranks)
        for metric in metrics.values()
        if metric.quantity == "bandwidth"
    }
    assert len(values) == 6
    for pair, value in values.items():
        exact = 1e-9 * SIZE / COPY_SECONDS / (SLOWER if {*pair} == {"gpu-0", "gpu-2"} else 1)
        assert value == pytest.approx(exact, rel=0.01), pair
    every = [value for value in values.values() if value is not None]
    for name, expected in (
        ("slowest", min(every)),
        ("fastest", max(every)),
        ("mean", sum(every) / 6),
    ):
        assert combined(metrics[f"{name}_bandwidth"], ranks) == pytest.approx(expected), name


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("lost", "from gpu-0 to gpu-1 is wrong in 1 of 1000 elements"),
        ("late", r"synchronize\(\) returned before the work was complete"),
    ],
)
@pytest.mark.usefixtures("exact_clock")
def test_what_did_not_arrive_at_another_device_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, reason: str
) -> None:
    monkeypatch.setattr("harness.measuring.blocks.MOST_IN_A_BLOCK", 1000)
    with pytest.raises(Mismatch, match=reason):
        left_by(tmp_path, 0, workload_of(2), Three(**{wrong: True}))


@pytest.mark.parametrize(
    ("devices", "nodes", "reason"),
    [(1, 1, "one device has no other to copy to"), (2, 2, "of a pair are on one node")],
)
def test_where_there_is_no_pair(tmp_path: Path, devices: int, nodes: int, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        left_by(tmp_path, 0, workload_of(devices, nodes), Three())


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("transfer", "the device is the host"),
        ("device_pairs", "on a CPU, devices share the host's memory"),
    ],
)
def test_devices_that_are_cores_have_no_copies(toy: Bench, kind: str, reason: str) -> None:
    options: dict[str, Any] = {**BARE, "precision": None, "kind": kind}
    record = toy.run("", **options, devices_per_node=2).record
    assert record["status"] == "unsupported"
    assert reason in record["reason"]
