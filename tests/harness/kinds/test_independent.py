"""Independent processes as the control of a scaling series.
They separate the loss by shared hardware from that by communication."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from harness.adapter import Mismatch
from harness.kinds.independent import Independent
from harness.rank import Barrier

from ...bench import Bench
from ..validity import assert_valid

CONTROL: dict[str, Any] = {"kind": "independent", "devices_per_node": 2}


def test_its_ranks_train_by_themselves_on_devices_of_their_own(toy: Bench) -> None:
    record = toy.run("sleep=0.01", **CONTROL, cores_per_device=1).record
    assert_valid(record)
    assert (record["status"], record["kind"]) == ("ok", "independent"), record["reason"]
    first, second = record["ranks"]
    assert (first["rank"], second["rank"]) == (0, 1)
    assert (first["device"], second["device"]) == ("toy:0", "toy:1")
    assert not {*first["cores"]} & {*second["cores"]}
    assert first["weights_checksum"] != second["weights_checksum"], "they trained together"
    assert not {"preflight"} & {*first, *second}, "they know of each other"
    slowest = max(rank["window_seconds"] for rank in record["ranks"])
    assert record["samples"] == 4 * 2 * 5
    assert record["metrics"]["throughput"]["value"] == record["samples"] / slowest


def test_a_rank_that_fails_ends_those_that_wait_for_it(toy: Bench) -> None:
    record = toy.run("nan_at=1", **CONTROL).record
    assert record["status"] == "failed"
    assert record["metrics"]["throughput"]["value"] is None


def test_ranks_with_equal_weights_have_exchanged_something() -> None:
    ranks = [{"weights_checksum": 1.5}, {"weights_checksum": 2.5}, {"weights_checksum": 1.5}]
    Independent().check(Mock(), ranks[:2])
    with pytest.raises(Mismatch, match="the same weights"):
        Independent().check(Mock(), ranks)


def test_nobody_passes_a_barrier_before_all_have_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (Barrier(str(tmp_path), rank, 2) for rank in range(2))
    waited: list[float] = []

    def meanwhile(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            second()

    monkeypatch.setattr("time.sleep", meanwhile)
    first()
    assert len(waited) == 3
    monkeypatch.setattr("time.sleep", lambda seconds: first())
    second()  # the second time: earlier passes do not count
