"""Concurrent calls on one machine: no two runs share a device, and a waiting run is told why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.processes import machine_lock

from ... import fake_gpus
from ...bench import ROOT, Bench
from ...processes import span, wait_for


class Neighbour(Bench):
    """Bench in a subfolder that shares the locks of its parent folder."""

    @property
    def locks(self) -> Path:
        return self.folder.parent / "locks"


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Bench]:
    bench = Neighbour(tmp_path / "other")
    bench.folder.mkdir()
    try:
        yield bench
        bench.assert_nothing_left()
    finally:
        for process in bench.processes():
            os.kill(process, signal.SIGKILL)


def says_that_it_waits(run: subprocess.Popen[str]) -> str:
    """Return the first line that a run prints, which is on waiting."""
    assert run.stderr
    line = run.stderr.readline()
    assert "waiting for" in line, line
    return line


def test_a_run_waits_for_another_and_says_for_whom(toy: Bench, other: Bench) -> None:
    toy.hold.touch()
    first = toy.start("hold=4", memory_limit="60%")
    toy.wait_for_phase("timed window", 1)
    ended = other.start("")
    says_that_it_waits(ended)
    ended.terminate()
    done = other.finish(ended)
    assert (done.status, done.record) == (143, None), done.stderr
    assert "Traceback" not in done.stderr
    second = other.start("", kind="inference", cores_per_device=1, time_limit=30)
    line = says_that_it_waits(second)
    assert f"process {first.pid} of " in line
    assert str(toy.output) in line
    for option in ("--set-threads", "--max-threads", "profile"):
        assert option in line
    toy.hold.unlink()
    actual, later = toy.finish(first), other.finish(second)
    assert [done.record["status"] for done in (actual, later)] == ["ok", "ok"]
    assert span(later.record)[0] > span(actual.record)[1], "waiting counts as its own time"
    assert "waiting" not in later.stderr, "it is said once"


def test_survivors_of_a_killed_launcher_keep_the_machine(toy: Bench, other: Bench) -> None:
    launcher = toy.start("hang,fork")
    toy.wait_for_phase("warm-up", 1)
    wait_for(lambda: len(toy.processes("RANK=0")) == 2, "rank 0 and its fork to be there")
    launcher.kill()
    toy.finish(launcher)
    wait_for(lambda: len(toy.processes("RANK=0")) == 1, "the rank to have followed it")
    second = other.start("")
    says_that_it_waits(second)
    (fork,) = toy.processes("RANK=0")
    os.kill(fork, signal.SIGKILL)
    assert other.finish(second).record["status"] == "ok"
    assert toy.run("").record["status"] == "ok"  # and removes the folder of the first


def test_what_is_no_lock_is_refused(toy: Bench) -> None:
    mine = toy.folder / "mine"
    mine.write_text("content")
    toy.locks.mkdir()
    lock = toy.locks / "machine.lock"
    lock.symlink_to(mine)
    done = toy.run("")
    assert (done.status, done.record) == (3, None)
    assert f"{lock}: " in done.stderr
    assert "allowed: a folder where all users may lock files; set FRAMEBENCH_LOCKS" in done.stderr
    assert mine.read_text() == "content"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_all_users_of_a_machine_share_its_lock() -> None:
    folder = Path("/tmp", f"framebench-test-{os.getpid()}")
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT / 'scripts')!r})\n"
        "from harness.processes import machine_lock\n"
        "os.umask(0o077)\n"
        "os.setuid(int(sys.argv[1]))  # who may not read our Python\n"
        "try:\n"
        "    with machine_lock.held('somebody', seconds=0):\n"
        "        print('taken', flush=True)\n"
        "        input()\n"
        "except machine_lock.MachineLockError as error:\n"
        "    print(error)\n"
    )

    def start(user: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, str(user)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FRAMEBENCH_LOCKS": str(folder)},
        )

    def said(process: subprocess.Popen[str]) -> str:
        assert process.stdout
        return process.stdout.readline().strip()

    try:
        for first, second in ((65534, 65533), (65533, 65534)):
            holder = start(first)
            assert said(holder) == "taken"
            assert said(start(second)) == "this machine is in use by somebody"
            holder.communicate("\n")
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_a_run_asks_for_gpus_once_and_says_where_it_cannot(
    toy: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    failing = (
        f"#!/bin/sh\necho asked >> '{asked}'\necho 'Driver/library version mismatch'\nexit 18\n"
    )
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", fake_gpus.write(tmp_path / "bin", failing), prepend=":")
    record = toy.run("", accelerator="cuda").record
    fault = record["environment"]["hardware"]["gpus_fault"]
    assert fault.startswith("nvidia-smi fails: Driver/library version mismatch")
    assert asked.read_text().split() == ["asked"]


@pytest.mark.parametrize("options", [{"accelerator": "cpu"}, {"devices_per_node": 2}])
def test_side_by_side_is_of_one_gpu(toy: Bench, options: dict[str, Any]) -> None:
    done = toy.run("", "--side-by-side", **{"accelerator": "cuda", **options})
    assert (done.status, done.record) == (2, None)
    assert "--side-by-side is for runs of one GPU" in done.stderr


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert f"of {os.getuid()}, which measures" in machine_lock.owner("run.json")
