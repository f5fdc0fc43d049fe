"""Parts of a training step, timed after the timed region."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from framebench.records.fields import steps as step_parts
from harness.measuring import after_window
from harness.messages import report

from ..bench import Bench
from .starting import start_program
from .validity import assert_valid


def seconds_of(rank: dict[str, Any]) -> dict[str, float]:
    split = step_parts.step_parts_of(rank)
    assert split is not None
    return dict(split.seconds)


@pytest.mark.parametrize("devices", [1, 2])
def test_parts_of_a_step_are_timed_behind_everything_that_counts(
    toy: Bench, devices: int, tmp_path: Path
) -> None:
    steps = {"warmup_steps": 1, "timed_steps": 2, "devices_per_node": devices}
    plain = toy.run("exact,sleep=0.4", **steps).record
    second = Bench(tmp_path / "second", toy.python, toy.marker)
    second.folder.mkdir()
    record = second.run("exact,sleep=0.4", parameters={"breakdown_steps": 3}, **steps).record
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    assert "step_breakdown" not in plain["ranks"][0], "nobody asked for it"
    for rank, without in zip(record["ranks"], plain["ranks"], strict=True):
        for unchanged in ("last_value", "weights_checksum"):
            assert rank[unchanged] == without[unchanged], "the window knows of the split"
        assert len(rank["step_seconds"]) == 2
        actual = seconds_of(rank)
        expected = {"forward": 0.1, "backward": 0.2, "optimizer": 0.1}
        assert set(actual) == set(expected) | ({"all_reduce"} if devices == 2 else set())
        for part, seconds in expected.items():
            assert actual[part] == pytest.approx(seconds, rel=0.01), part
        # averaged() takes 1.25 steps, of which forward and backward alone take 0.3 s
        if devices == 2:
            assert actual["all_reduce"] == pytest.approx(0.2, rel=0.01)


def test_parts_of_a_step_take_a_small_part_of_the_run(toy: Bench) -> None:
    options = {"breakdown_steps": 1000}
    record = toy.run("sleep=0.2", timed_steps=3, parameters=options).record
    parts = [part["seconds"] for part in record["ranks"][0]["step_breakdown"]["parts"]]
    steps = [sum(step) for step in zip(*parts, strict=True)]
    assert steps
    assert sum(steps[:-1]) < after_window.PARTS_SHARE * record["wall_seconds"], (
        "more than a tenth and one step"
    )


def test_inference_has_no_parts(toy: Bench) -> None:
    done = toy.run("", kind="inference", parameters={"breakdown_steps": 3})
    assert (done.status, done.record) == (2, None)
    assert "--parameter breakdown_steps: found an unknown key; allowed: none" in done.stderr


def test_parts_that_fail_do_not_cost_the_run(toy: Bench) -> None:
    record = toy.run("no_parts", parameters={"breakdown_steps": 3}).record
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    assert record["metrics"]["throughput"]["value"] > 0
    assert record["ranks"][0]["step_breakdown"] == {
        "reason": "RuntimeError: the toy is one piece",
        "parts": [],
    }


def test_parts_that_hang_are_ended_and_do_not_cost_the_run(tmp_path: Path) -> None:
    assert start_program("hang_in_parts", tmp_path).wait(300) == -signal.SIGALRM
    _, final, fields = report.read(str(tmp_path), 0)
    assert final, "the launcher must see a result"
    assert fields["status"] == "ok"
    assert "too long" in fields["step_breakdown"]["reason"]
