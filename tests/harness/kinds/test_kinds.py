"""Benchmarks: found by folder, with their own parameters, metrics and verifications."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from harness.adapter import Mismatch
from harness.kinds.independent import Independent
from harness.rank import Barrier

from ...bench import ROOT, Bench
from ..bare import WITHOUT_FRAMEWORK
from ..validity import assert_outcome, assert_valid

#: Options of a benchmark that needs neither a framework nor its axes.
COPY: dict[str, Any] = {
    "kind": "memory_copy",
    "kinds": ROOT / "tests/kinds",
    "parameters": {"size": 2**20},
    "framework": None,
    "model": None,
    "batch_per_device": None,
    "precision": None,
    "compiler": None,
}
FAULTY = ROOT / "tests/harness/faulty_kinds"


def test_a_kind_from_another_folder_needs_no_framework(toy: Bench) -> None:
    topology = {"nodes": 1, "devices_per_node": 2}
    done = toy.run("", **COPY, devices_per_node=2, cores_per_device=1)
    record = done.record
    assert done.status == 0, done.stderr
    assert_valid(record)
    assert (record["status"], record["kind"]) == ("ok", "memory_copy"), record["reason"]
    others = ("framework", "model", "batch_per_device", "precision", "compiler", "sequence_length",
              "accumulation", "parallelism", "input")  # fmt: skip
    assert record["case"] == {**dict.fromkeys(others), **topology}
    assert record["parameters"] == {"size": 2**20, "copies": 10}, "the usual number is recorded"
    assert not {"warmup_steps", "timed_steps"} & set(record["settings"]), "it has no steps"
    rates = [
        1e-9 * 2**20 * len(rank["copy_seconds"]) / rank["window_seconds"]
        for rank in record["ranks"]
    ]
    slowest = max(max(rank["copy_seconds"]) for rank in record["ranks"])
    assert record["metrics"] == {
        "bandwidth": {"value": sum(rates), "unit": "GB/s", "better": "higher"},
        "longest_copy": {"value": 1e3 * slowest, "unit": "ms", "better": "lower"},
    }
    assert [len(rank["copy_seconds"]) for rank in record["ranks"]] == [10] * 2
    assert record["window_seconds"] == max(rank["window_seconds"] for rank in record["ranks"])
    assert record["samples"] is None
    assert record["framework_version"] == ""
    assert "ok: bandwidth " in done.stdout
    assert {tuple(rank["phases"]) for rank in record["ranks"]} == {("fill_seconds",)}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("measure", "OSError: no disk"),
        ("check", "Mismatch: the ranks differ"),
        ("missing", "Mismatch: the ranks left no speed: KeyError: 'speed'"),
    ],
)
def test_what_goes_wrong_in_a_kind_is_said(toy: Bench, fault: str, reason: str) -> None:
    options = {**COPY, "kind": "broken", "kinds": FAULTY, "parameters": {"fault": fault}}
    record = toy.run("", **options).record
    assert_valid(record)
    assert (record["status"], record["reason"]) == ("failed", reason)
    assert record["metrics"]["speed"] == {"value": None, "unit": "m/s", "better": "higher"}
    assert record["ranks"][0]["known"] == 7, "what was known before the error is lost"


@pytest.mark.parametrize(
    ("kind", "more", "variables", "install"),
    [
        ("memory", {}, {"CC": "no-such-cc"}, "gcc libc6-dev"),
        ("rdma", {"devices_per_node": 2}, {"PATH": "/nowhere"}, "perftest"),
        ("storage", {}, {"PATH": "/nowhere"}, "fio"),
    ],
)
def test_without_its_program_a_kind_is_unsupported_with_what_to_install(
    toy: Bench, kind: str, more: dict[str, Any], variables: dict[str, str], install: str
) -> None:
    loopback, folder = {"loopback": "yes"}, {"folder": toy.folder}
    given = {"memory": {}, "storage": folder}.get(kind, loopback)
    record = toy.run(
        "", **WITHOUT_FRAMEWORK, **more, kind=kind, parameters=given, variables=variables
    ).record
    assert_outcome(record, "unsupported", f"apt-get install {install}")


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
