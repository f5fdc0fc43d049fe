"""Search for the largest batch, with made-up memory sizes, and single runs."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from harness.kinds.largest_batch import ended_by, next_batch

from ...bench import Bench
from ...processes import PATIENCE, wait_for
from ..validity import assert_valid


def searched(fits: Callable[[int], bool], bounds: tuple[int, int]) -> list[tuple[int, str]]:
    tried: list[tuple[int, str]] = []
    batch = next_batch(tried, *bounds)
    while batch is not None:
        tried.append((batch, "ok" if fits(batch) else "oom"))
        batch = next_batch(tried, *bounds)
    return tried


def attempts(tried: list[tuple[int, str]]) -> list[dict[str, Any]]:
    return [{"batch_per_device": batch, "status": status} for batch, status in tried]


@pytest.mark.parametrize("step", [1, 2, 3, 8, 32, 100])
def test_finds_the_largest_multiple_that_fits_with_few_runs(step: int) -> None:
    for at_most in {step, step + 1, 2 * step, 7 * step, 100 * step + 1, 4096}:
        largest = at_most // step * step
        for limit in {*range(0, 12 * step), *range(0, 4100, 37), at_most - 1, at_most}:
            tried = searched(lambda batch, limit=limit: batch <= limit, (step, at_most))
            expected = min(limit // step * step, largest)
            ended = ended_by(attempts(tried))
            if expected:
                assert tuple(ended.values()) == (expected, "ok"), (step, at_most, limit, tried)
            else:
                assert tuple(ended.values()) == (step, "oom"), "the smallest does not fit"
            assert len(set(tried)) == len(tried), "a batch was tried twice"
            steps = largest // step
            assert len(tried) <= 2 * math.log2(steps) + 2, f"{len(tried)} runs of {steps} batches"
            fits = 0
            for batch, status in tried:
                assert batch % step == 0
                assert batch <= largest
                assert not fits or batch <= 2 * fits, "more than twice what fits"
                fits = max(fits, batch) if status == "ok" else fits


@pytest.mark.parametrize("status", ["failed", "timeout", "unsupported"])
def test_anything_else_ends_the_search(status: str) -> None:
    tried = [(8, "ok"), (16, "ok"), (32, status)]
    assert next_batch(tried, 8, 4096) is None
    assert tuple(ended_by(attempts(tried)).values()) == (32, status)


#: Request in which the toy holds some MiB per sample.
ASKED: dict[str, Any] = {
    "kind": "largest_batch",
    "parameters": {"mode": "train", "multiple_of": 2, "at_most": 64},
    "batch_per_device": None,
    "devices_per_node": 1,
    "warmup_steps": 1,
    "timed_steps": 2,
    "memory_limit": "160MiB",
}
FILL = "fill=16,sleep=0.1"


def test_a_search_leaves_one_record_with_what_it_tried(toy: Bench) -> None:
    done = toy.run(FILL, **ASKED)
    record = done.record
    assert done.status == 0, done.stderr
    assert_valid(record)
    assert (record["status"], record["kind"]) == ("ok", "largest_batch"), record["reason"]
    assert record["case"]["batch_per_device"] is None
    assert record["parameters"] == ASKED["parameters"]
    metric = record["metrics"]["largest_batch"]
    assert (metric["unit"], metric["better"]) == ("samples/device", "higher")
    ends = {attempt["batch_per_device"]: attempt["status"] for attempt in record["attempts"]}
    assert (ends[metric["value"]], ends[metric["value"] + 2]) == ("ok", "oom")
    for attempt in record["attempts"]:
        tried = json.loads((toy.output.parent / attempt["record"]).read_text())
        assert_valid(tried)
        assert (tried["kind"], tried["status"]) == ("train", attempt["status"])
        assert tried["case"]["batch_per_device"] == attempt["batch_per_device"]
        assert tried["framework_version"] == record["framework_version"]
    assert f"ok: largest_batch {metric['value']:g} samples/device" in done.stdout
    log = toy.log.read_text()
    assert "batch_per_device 2: ok" in log, log


def test_no_multiple_within_the_bound_is_unsupported(toy: Bench) -> None:
    bounds = {"mode": "train", "multiple_of": 16, "at_most": 10}
    record = toy.run("", **{**ASKED, "parameters": bounds}).record
    assert_valid(record)
    assert (record["status"], record["attempts"]) == ("unsupported", [])
    assert "no multiple of 16 is at most 10" in record["reason"]


def test_a_series_that_is_asked_to_end_ends_its_run_and_goes_on_later(toy: Bench) -> None:
    def tried() -> dict[str, str]:
        folder = toy.output.with_suffix("")
        return {path.name: path.read_text() for path in folder.glob("*.json")}

    process = toy.start(FILL, **ASKED)
    wait_for(lambda: len(tried()) >= 2, "some runs")
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    assert not toy.output.exists(), "a record of a series that was interrupted"
    toy.assert_nothing_left()
    before = tried()
    done = toy.run(FILL, **ASKED)
    assert done.record["status"] == "ok", done.record["reason"]
    after = tried()
    assert all(after[name] == text for name, text in before.items()), "tried again"
