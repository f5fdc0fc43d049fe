"""Copies to a device and back: none on a CPU; elsewhere arrivals are verified."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from harness.adapter import Case, Mismatch, Unsupported
from harness.kind import Context, Workload
from harness.kinds import transfer
from harness.machine import cores
from harness.messages.report import Report
from harness.telemetry import nvml

from ...bench import Bench, Finished
from ..bare import BARE
from ..fake_sensors import GPU, VARIABLES
from ..machine.fake_machine import FakeNvml
from .copying import COPY_SECONDS, CopyingDevice

PARAMETERS = {
    "pinned": "no", "host_node": "near", "largest_bytes": 2**17, "blocks": 2, "block_seconds": 0.01
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
        value = metrics[f"device_to_host_bandwidth at bytes {size}"].of_rank(fields)
        assert value == pytest.approx(size / COPY_SECONDS * 1e-9, rel=0.01)
    assert metrics["host_to_device"].of_rank(fields) == pytest.approx(
        metrics[f"host_to_device_bandwidth at bytes {2**17}"].of_rank(fields)
    )
    assert metrics["pcie_lanes"].of_rank(fields) is None
    assert "nvidia-ml-py" in fields["absent"]["gpu-0 pcie_lanes"]


def test_the_link_to_the_host_is_what_nvml_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = FakeNvml({**GPU, "generation": 5, "lanes": 8})
    monkeypatch.setattr(nvml, "find", lambda variables, n: nvml.Gpus(library, VARIABLES, n))
    kind, workload, fields = copied(tmp_path)
    metrics = kind.metrics(workload)
    reported = {name: metrics[name].of_rank(fields) for name in ("pcie_generation", "pcie_lanes")}
    assert reported == {"pcie_generation": 5, "pcie_lanes": 8}
    assert fields["absent"] == {}
    del library.devices[0]["lanes"]
    _, _, fields = copied(tmp_path)
    assert metrics["pcie_lanes"].of_rank(fields) is None, "not told is no zero"
    assert fields["absent"] == {"gpu-0 pcie_lanes": "Not Supported"}


def test_the_memory_of_another_numa_node_is_touched_by_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.sched_getaffinity(0)
    other = {max(before)}
    nodes = {0: [min(before)], 1: [*other], 2: [4095]}
    monkeypatch.setattr(cores, "by_numa_node", lambda root="": nodes)
    adapter = CopyingDevice()
    _, _, fields = copied(tmp_path, adapter, host_node="1")
    assert adapter.ran_on == other, "the array was made elsewhere"
    assert 1 in fields["numa_nodes"]
    assert os.sched_getaffinity(0) == before, "the rank did not go back to its cores"
    with pytest.raises(Unsupported, match="there is no NUMA node 7 here, but 0, 1, 2"):
        copied(tmp_path, host_node="7")
    with pytest.raises(Mismatch, match="this run may not use the cores of NUMA node 2"):
        copied(tmp_path, host_node="2")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("lost", "host_to_device of 65536 bytes: 1 of 16384 numbers arrived as others"),
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


def test_a_device_that_is_the_host_has_none(toy: Bench) -> None:
    options: dict[str, Any] = {**BARE, "precision": None, "kind": "transfer"}
    done: Finished = toy.run("", **options)
    assert done.record["status"] == "unsupported"
    assert done.record["reason"] == "the device is the host"
