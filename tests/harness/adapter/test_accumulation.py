"""Micro-steps through the real command line: results, counts, messages and records."""

from __future__ import annotations

import numpy as np
import pytest
from harness.adapter import micro_batches

from ...bench import Bench
from ..validity import assert_valid

SPLIT = {"parameters": {"breakdown_steps": 1}}


@pytest.mark.parametrize("devices", [1, 2])
def test_a_step_has_the_samples_of_all_its_micro_steps(toy: Bench, devices: int) -> None:
    done = toy.run("", devices_per_node=devices, accumulation=3, **SPLIT)
    record = done.record
    assert done.status == 0, done.stderr
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    assert (record["case"]["accumulation"], record["case"]["batch_per_device"]) == (3, 4)
    assert record["samples"] == 4 * 3 * devices * 5
    throughput = record["metrics"]["throughput"]["value"]
    assert throughput == pytest.approx(record["samples"] / record["window_seconds"])
    for rank in record["ranks"]:
        assert "alternate" in rank["step_breakdown"]["reason"], "parts of micro-steps were timed"


def test_micro_batches_have_all_samples_once() -> None:
    batch = {"x": np.arange(12).reshape(6, 2), "labels": np.arange(6)}
    parts = micro_batches(batch, 3)
    assert [list(part["labels"]) for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert np.array_equal(np.concatenate([part["x"] for part in parts]), batch["x"])
    with pytest.raises(ValueError, match="4 micro-steps"):
        micro_batches(batch, 4)
