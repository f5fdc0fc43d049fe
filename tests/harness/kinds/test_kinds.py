"""Benchmarks: found by folder, with their own parameters, metrics and verifications."""

from __future__ import annotations

from typing import Any

import pytest
from harness import kinds
from harness.kind import Metric, combined

from ...bench import ROOT, Bench
from ..validity import assert_valid

#: Options of a benchmark without a framework and its axes.
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


@pytest.mark.parametrize("devices", [1, 2])
def test_a_kind_from_another_folder_needs_no_framework(toy: Bench, devices: int) -> None:
    done = toy.run("", **COPY, devices_per_node=devices, cores_per_device=1)
    record = done.record
    assert done.status == 0, done.stderr
    assert_valid(record)
    assert (record["status"], record["kind"]) == ("ok", "memory_copy"), record["reason"]
    topology = {"nodes": 1, "devices_per_node": devices}
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
    assert [len(rank["copy_seconds"]) for rank in record["ranks"]] == [10] * devices
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
        ("null", "Mismatch: the ranks left no speed"),
    ],
)
def test_what_goes_wrong_in_a_kind_is_said(toy: Bench, fault: str, reason: str) -> None:
    options = {**COPY, "kind": "broken", "kinds": FAULTY, "parameters": {"fault": fault}}
    record = toy.run("", **options).record
    assert_valid(record)
    assert (record["status"], record["reason"]) == ("failed", reason)
    assert record["metrics"]["speed"] == {"value": None, "unit": "m/s", "better": "higher"}
    assert record["ranks"][0]["known"] == 7, "what was known before the error is lost"


def test_a_capability_that_a_framework_lacks_is_unsupported(toy: Bench) -> None:
    """Fail if a missing capability is not unsupported; the toy lacks this benchmark's class."""
    record = toy.run("", kind="demanding", kinds=FAULTY).record
    assert record["status"] == "unsupported", record["reason"]
    assert record["reason"] == "toy brings no Generation"


def test_how_the_ranks_of_a_run_make_its_metric() -> None:
    ranks = [{"x": 3.0}, {"x": 1.0}, {"x": 5.0}]
    created = {
        how: combined(Metric("", "higher", how, lambda rank: rank["x"]), ranks)
        for how in ("sum", "max", "min", "mean", "first")
    }
    assert created == {"sum": 9.0, "max": 5.0, "min": 1.0, "mean": 3.0, "first": 3.0}
    lacking = Metric("", "higher", "sum", lambda rank: rank.get("y"))
    assert combined(lacking, [*ranks, {"y": 1.0}]) is None, "a rank without it is left out"
    of_one = Metric("", "higher", "first", lambda rank: rank["y"])
    assert combined(of_one, [{"y": 2.0}, *ranks]) == 2.0, "others are asked for what the first has"


def test_kinds_are_named_like_their_modules() -> None:
    assert {*kinds.names(str(ROOT / "tests/kinds"))} - {*kinds.names()} == {"memory_copy"}
    for name in kinds.names():
        assert kinds.load(name).name == name
