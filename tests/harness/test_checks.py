"""Several checks in one call (``--check``), each in a fork of a process that imports once."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from typing import Any

from ..bench import Bench
from ..processes import wait_for
from .kinds.test_peak_flops import PEAK
from .validity import assert_outcome

#: Options of a call whose checks each give them themselves.
ALONE: dict[str, Any] = {"batch_per_device": None, "compiler": None}
#: A check that waits while the file ``hold`` exists.
HELD = {"kind": "inference"}


def checks(toy: Bench, **named: dict[str, Any]) -> list[str]:
    """Return options for checks; the record of each is ``NAME.json``, its log ``NAME.log``."""
    words = []
    for name, options in named.items():
        files = {
            kind: toy.folder / f"{name}.{end}" for kind, end in (("output", "json"), ("log", "log"))
        }
        words += ["--check", shlex.join(toy.command(**{**files, **options})[2:])]
    return words


def record(toy: Bench, name: str) -> Any:
    path = toy.folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def log(toy: Bench, name: str) -> str:
    return (toy.folder / f"{name}.log").read_text()


def held(toy: Bench) -> int:
    wait_for(lambda: (toy.folder / "held.log").exists() and "in process" in log(toy, "held"), "it")
    match = re.search(r"in process (\d+)", log(toy, "held"))
    assert match
    return int(match[1])


def test_checks_are_forks_of_a_process_that_imports_once(toy: Bench) -> None:
    options = checks(toy, first=PEAK, second={"batch_per_device": 8}, third={})
    done = toy.run("", *options, **ALONE)
    assert done.status == 0, done.stderr
    assert done.record is None, "the call itself measures nothing"
    said = [re.search(r"in process (\d+), imported in (\d+)", log(toy, name))
            for name in ("first", "second", "third")]  # fmt: skip
    assert len({match[1] for match in said if match}) == 3, "a check saw what another one changed"
    assert len({match[2] for match in said if match}) == 1
    for name in ("first", "second", "third"):
        made = record(toy, name)
        assert_outcome(made, "ok")
        assert "--check" not in made["command"], "the command repeats this check alone"
    assert record(toy, "second")["case"]["batch_per_device"] == 8
    assert "matmuls" not in record(toy, "second")["ranks"][0], "it has what it left itself"


def test_a_check_that_fails_or_is_killed_loses_no_other(toy: Bench) -> None:
    toy.hold.touch()
    options = checks(toy, first={}, broken={"batch_per_device": 8}, held=HELD, later={})
    launcher = toy.start("raise_from_batch=8,hold_inference=1", *options, **ALONE)
    rank = held(toy)
    assert record(toy, "first")["status"] == "ok", "its record is there before the next one begins"
    os.kill(rank, signal.SIGKILL)
    assert toy.finish(launcher).status == 0
    assert record(toy, "broken")["reason"] == "RuntimeError: the toy is too small for that batch"
    assert record(toy, "held")["reason"].startswith("rank 0 was killed by signal 9 (SIGKILL)")
    assert record(toy, "later")["status"] == "ok"


def test_a_call_that_is_interrupted_keeps_what_is_there(toy: Bench) -> None:
    toy.hold.touch()
    launcher = toy.start("hold_inference=1", *checks(toy, first={}, held=HELD, later={}), **ALONE)
    held(toy)
    launcher.send_signal(signal.SIGTERM)
    assert toy.finish(launcher).status == 128 + signal.SIGTERM
    assert [bool(record(toy, name)) for name in ("first", "held", "later")] == [True, False, False]


def test_a_check_ends_at_its_time_limit_and_an_existing_record_is_kept(toy: Bench) -> None:
    toy.hold.touch()
    (toy.folder / "first.json").write_text("{}")
    options = checks(toy, first={}, held={**HELD, "time_limit": 2}, later={})
    done = toy.run("hold_inference=1", *options, **ALONE)
    assert done.status == 2
    assert record(toy, "first") == {}
    assert record(toy, "held")["status"] == "timeout"
    assert record(toy, "later")["status"] == "ok"


def test_checks_in_another_environment_start_anew(toy: Bench) -> None:
    differing = {"variable": "FRAMEBENCH_TOY=sleep=0"}
    done = toy.run("", *checks(toy, first={}, second=differing), **ALONE)
    assert done.status == 0, done.stderr
    imported = {re.search(r"imported in (\d+)", log(toy, name))[1]  # type: ignore[index]
                for name in ("first", "second")}  # fmt: skip
    assert len(imported) == 2
