"""Checks that follow a run in the process of its only rank (``--then``)."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ..bench import Bench, Finished
from .validity import assert_valid

OTHER = Path(__file__).parents[2] / "scripts" / "frameworks" / "pytorch"
PEAK = {
    "kind": "peak_flops",
    "batch_per_device": None,
    "compiler": None,
    "parameters": {"sustained_seconds": 0.2},
}


def check(toy: Bench, name: str, **options: Any) -> str:
    """Return the arguments of a check whose record is ``NAME.json``."""
    output = toy.folder / f"{name}.json"
    return shlex.join(toy.command(**{"output": output, "log": None, **options})[2:])


def measured(toy: Bench, behaviour: str, *checks: str, **options: Any) -> Finished:
    then = [word for text in checks for word in ("--then", text)]
    return toy.run(behaviour, *then, **options)


def record(toy: Bench, name: str) -> Any:
    path = toy.folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_a_check_has_a_record_of_its_own_and_the_process_of_the_run(toy: Bench) -> None:
    done = measured(toy, "sleep=0.01", check(toy, "peak", **PEAK))
    peak = record(toy, "peak")
    assert_valid(done.record)
    assert_valid(peak)
    assert (done.record["kind"], done.record["status"]) == ("train", "ok")
    assert (peak["kind"], peak["status"]) == ("peak_flops", "ok")
    started = [line for line in toy.log.read_text().splitlines() if "toy in process" in line]
    assert len(started) == 2, "each has an adapter of its own"
    assert len({*started}) == 1, "both are in one process"
    assert "matmuls" not in done.record["ranks"][0], "the run has only what it left itself"
    assert "--then" not in done.record["command"], "the check is not part of the run"
    assert peak["command"][2:4] == ["--framework", str(toy.command()[3])], peak["command"]


def test_the_time_of_a_check_is_not_that_of_the_run(toy: Bench) -> None:
    run = measured(toy, "", check(toy, "peak", **PEAK)).record
    peak = record(toy, "peak")
    begun, then = (datetime.fromisoformat(entry["started"]) for entry in (run, peak))
    assert (then - begun).total_seconds() == pytest.approx(run["wall_seconds"], abs=0.01)
    assert peak["wall_seconds"] > sum(peak["ranks"][0]["sustained"]["seconds"])


def test_a_check_that_fails_is_left_to_a_process_of_its_own(toy: Bench) -> None:
    later = check(toy, "later", **PEAK)
    done = measured(toy, "raise_from_batch=8", check(toy, "broken", batch_per_device=8), later)
    assert (done.status, done.record["status"]) == (0, "ok")
    assert record(toy, "broken") is None
    assert record(toy, "later") is None, "the process is gone"


def test_no_check_follows_a_run_that_failed(toy: Bench) -> None:
    done = measured(toy, "raise_rank=0", check(toy, "peak", **PEAK))
    assert done.record["status"] == "failed"
    assert record(toy, "peak") is None


@pytest.mark.parametrize(
    ("differing", "found"),
    [
        ({"framework": OTHER}, "--framework: found"),
        ({"seed": 1}, "--seed: found 1"),
        ({"devices_per_node": 2}, "of several devices"),
    ],
)
def test_what_cannot_follow_in_the_process_is_refused(
    toy: Bench, differing: dict[str, Any], found: str
) -> None:
    done = measured(toy, "", check(toy, "other", **differing))
    assert done.status == 2
    assert found in done.stderr
    assert "allowed" in done.stderr
    assert done.record is None
