"""Copies to a device and back: on a CPU there are none; elsewhere what arrives is checked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.adapter import Case, Mismatch, Place
from harness.kind import Context, Subject
from harness.kinds import transfer
from harness.messages.report import Report
from harness.operations import Operation

from ..bench import Bench, Finished
from .test_micro import BARE

PARAMETERS = {"pinned": "no", "largest_bytes": 2**17, "blocks": 2, "block_seconds": 0.01}


class Copying:
    """A device whose copies take half a millisecond. ``late``: nothing waits for them; ``lost``:
    the last number does not arrive."""

    def __init__(self, late: bool = False, lost: bool = False) -> None:
        self.place = Place(0, 0, ["127.0.0.1:1"], "cuda", 1, 0)
        self.late, self.lost, self.done_at = late, lost, 0.0

    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        arrived = np.where(np.arange(array.size) < array.size - self.lost, array, np.float32(0))

        def run() -> None:
            self.done_at = max(self.done_at, time.perf_counter()) + 5e-4

        return Operation(run, lambda: (self._wait(), arrived)[1], "float32")

    def _wait(self) -> None:
        time.sleep(max(0.0, self.done_at - time.perf_counter()))

    def synchronize(self) -> None:
        if not self.late:
            self._wait()

    def reset_peak_device_memory(self) -> None:
        """It has none."""


def copied(folder: Path, **wrong: bool) -> tuple[transfer.Transfer, Subject, dict[str, Any]]:
    case = Case("toy", "", "inference", 1, 1, 1, "", "none", None)
    subject = Subject(case, {}, PARAMETERS, 1, None, 1)
    adapter: Any = Copying(**wrong)
    report = Report(str(folder), 0, "here")
    kind = transfer.Transfer()
    kind.measure(Context(subject, adapter.place, adapter, [], report))
    return kind, subject, report.fields


def test_bandwidth_is_what_arrives_over_the_time_that_it_takes(tmp_path: Path) -> None:
    kind, subject, fields = copied(tmp_path)
    metrics = kind.metrics(subject)
    assert list(metrics)[:3] == [*transfer.DIRECTIONS]
    for size in (2**16, 2**17):
        value = metrics[f"device_to_host_bandwidth at bytes {size}"].of_rank(fields)
        assert value is not None
        assert 0.6 * size / 5e-4 * 1e-9 < value <= size / 5e-4 * 1e-9
    assert metrics["host_to_device"].of_rank(fields) == pytest.approx(
        metrics[f"host_to_device_bandwidth at bytes {2**17}"].of_rank(fields)
    )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("lost", "host_to_device of 65536 bytes: 1 of 16384 numbers arrived as others"),
        ("late", r"synchronize\(\) returned before the work was complete"),
    ],
)
def test_what_did_not_arrive_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, reason: str
) -> None:
    monkeypatch.setattr("harness.measuring.blocks._MOST_IN_A_BLOCK", 1000)
    with pytest.raises(Mismatch, match=reason):
        copied(tmp_path, **{wrong: True})


def test_a_device_that_is_the_host_has_none(toy: Bench) -> None:
    options: dict[str, Any] = {**BARE, "precision": None, "kind": "transfer"}
    done: Finished = toy.run("", **options)
    assert done.record["status"] == "unsupported"
    assert done.record["reason"] == "the device is the host"


def test_sizes_grow_fourfold_up_to_the_largest() -> None:
    assert transfer.sizes_to(2**16) == [2**16]
    assert transfer.sizes_to(2**20) == [2**16, 2**18, 2**20]
    assert transfer.sizes_to(300001) == [2**16, 2**18, 300000]
