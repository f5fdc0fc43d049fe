"""Copies between two devices: each pair alone, and detection of mistakes.
Devices are doubles: tests run without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.adapter import Case, Mismatch, RankContext, Unsupported
from harness.kind import Context, Workload, combined
from harness.kinds import device_pairs
from harness.messages.report import Report
from harness.operations import Operation

from ...bench import Bench
from ..bare import BARE
from .copying import COPY_SECONDS, CopyingDevice

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
    """Return the entry that one of the ranks writes."""
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
    slowest = combined(metrics["slowest_bandwidth"], ranks)
    assert slowest == min(value for value in values.values() if value is not None)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("lost", "from gpu-0 to gpu-1: 1 of 1000 numbers arrived as others"),
        ("late", r"synchronize\(\) returned before the work was complete"),
    ],
)
@pytest.mark.usefixtures("exact_clock")
def test_what_did_not_arrive_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, reason: str
) -> None:
    monkeypatch.setattr("harness.measuring.blocks.MOST_IN_A_BLOCK", 1000)
    with pytest.raises(Mismatch, match=reason):
        left_by(tmp_path, 0, workload_of(2), Three(**{wrong: True}))


@pytest.mark.parametrize(
    ("devices", "nodes", "reason"),
    [(1, 1, "one device has no other to copy to"), (2, 2, "of a pair are of one node")],
)
def test_where_there_is_no_pair(tmp_path: Path, devices: int, nodes: int, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        left_by(tmp_path, 0, workload_of(devices, nodes), Three())


def test_devices_that_are_cores_have_none(toy: Bench) -> None:
    options: dict[str, Any] = {**BARE, "precision": None, "kind": "device_pairs"}
    record = toy.run("", **options, devices_per_node=2).record
    assert record["status"] == "unsupported"
    assert "devices that are cores share the host's memory" in record["reason"]
