"""No process and no half record is left, whichever process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.processes import descendants

from ...bench import PATIENCE, ROOT, Bench
from ...processes import wait_for
from ..validity import assert_outcome


def start_hanging(
    toy: Bench, *, ranks: int = 2, prefix: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    launcher = toy.start("hang,grandchild", devices_per_node=ranks, prefix=prefix)
    toy.wait_for_phase("warm-up", ranks)
    wait_for(lambda: len(toy.processes("RANK=0")) == 2, "rank 0 and its grandchild to be there")
    return launcher


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_everything_without_a_record(
    toy: Bench, number: signal.Signals, status: int
) -> None:
    launcher = start_hanging(toy)
    rank, _ = sorted(toy.processes("RANK=0"))
    scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (rank, launcher.pid)]
    assert scores[0] == 1000 > scores[1], "the kernel would kill the launcher first"
    assert_temporary_folder_of_its_own(toy)
    launcher.send_signal(number)
    done = toy.finish(launcher)
    assert done.status == status, done.stderr
    assert done.record is None, "an interrupted run must not leave a record"
    assert "Traceback" not in done.stderr, "an interruption is no error of ours"
    assert not toy.processes("RANK=0"), "processes were left when the launcher returned"
    toy.assert_nothing_left()


def test_a_signal_that_reaches_the_rank_first_leaves_no_record_either(toy: Bench) -> None:
    launcher = toy.start("hang")
    toy.wait_for_phase("warm-up", 1)
    (rank,) = toy.processes("RANK=0")
    os.kill(rank, signal.SIGTERM)
    wait_for(lambda: not Path(f"/proc/{rank}").exists(), "the launcher to see the rank's end")
    launcher.send_signal(signal.SIGTERM)
    done = toy.finish(launcher)
    assert (done.record, done.status) == (None, 128 + signal.SIGTERM), done.stderr


def test_killing_the_launcher_takes_its_ranks_along(toy: Bench) -> None:
    launcher = toy.start("hang", devices_per_node=2)
    toy.wait_for_phase("warm-up", 2)
    launcher.kill()
    assert toy.finish(launcher).record is None
    toy.assert_nothing_left(killed=True)
    assert toy.run("").record["status"] == "ok"
    toy.assert_nothing_left()


def test_killing_the_launchers_parent_takes_everything_along(toy: Bench) -> None:
    wrapper = (
        "import os, subprocess, sys\n"
        "os.environ['FRAMEBENCH_DIE_WITH_PARENT'] = str(os.getpid())\n"
        "sys.exit(subprocess.call(sys.argv[1:]))"
    )
    parent = start_hanging(toy, prefix=(sys.executable, "-c", wrapper))
    parent.kill()
    parent.wait()
    toy.assert_nothing_left()
    parent.communicate()
    assert toy.read_record() is None


def test_a_launcher_whose_parent_is_gone_measures_nothing(toy: Bench) -> None:
    done = toy.run("", variables={"FRAMEBENCH_DIE_WITH_PARENT": "1"})
    assert done.status == 128 + signal.SIGTERM
    assert done.record is None


def test_killing_a_rank_ends_the_run_with_a_record_that_says_so(toy: Bench) -> None:
    launcher = start_hanging(toy)
    rank = min(toy.processes("RANK=1"))
    os.kill(rank, signal.SIGKILL)
    done = toy.finish(launcher)
    assert_outcome(done.record, "failed", "rank 1 was killed by signal 9 (SIGKILL) during: warm-up")
    assert "another failed" in done.record["ranks"][0]["reason"]
    toy.assert_nothing_left()


def test_the_time_limit_ends_everything(toy: Bench) -> None:
    done = toy.run("hang,grandchild", devices_per_node=2, time_limit=4)
    assert_outcome(done.record, "timeout", "time limit of 4 s was reached during: ")
    assert not toy.processes("RANK=0"), "processes were left when the launcher returned"
    toy.assert_nothing_left()


def test_compiler_workers_end_with_a_good_run(toy: Bench) -> None:
    done = toy.run("grandchild")
    assert done.record["status"] == "ok", done.record["reason"]
    assert not toy.processes("RANK=0"), "the grandchild outlived the run"
    toy.assert_nothing_left()


#: Program that makes and removes a temporary folder, and gets a signal in the middle of one of
#: these functions.
INTERRUPTED = """
import os, shutil, signal, sys
from core import programs
from harness import output

def interrupted(called):
    def call(*given, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return called(*given, **options)
    return call

module, name = sys.argv[1].split(".")
setattr(sys.modules[module], name, interrupted(getattr(sys.modules[module], name)))
try:
    programs.raise_signals()
    with output.temporary_folder():
        pass
except programs.Interrupted:
    print("interrupted")
"""


@pytest.mark.parametrize("moment", ["os.mkdir", "os.rename", "shutil.rmtree", "os.close"])
def test_a_signal_while_a_temporary_folder_is_made_or_removed_leaves_none(
    moment: str, tmp_path: Path
) -> None:
    variables = {"PYTHONPATH": str(ROOT / "scripts"), "TMPDIR": str(tmp_path)}
    printed = subprocess.check_output(
        [sys.executable, "-c", INTERRUPTED, moment], env={**os.environ, **variables}, text=True
    )
    assert printed == "interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_memory(toy: Bench) -> Iterator[Path]:
    root = Path("/sys/fs/cgroup")
    version_1 = (root / "memory").is_dir()
    group = (root / "memory" if version_1 else root) / f"framebench-{toy.marker}"
    limit = "memory.limit_in_bytes" if version_1 else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(2**27))
        (group / "memory.swappiness" if version_1 else group / "memory.swap.max").write_text("0")
    except OSError as error:
        pytest.skip(f"needs a control group of its own, as root: {error}")
    yield group
    wait_for(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
    group.rmdir()


def test_the_kernels_kill_for_want_of_memory_is_oom(toy: Bench, small_memory: Path) -> None:
    def enter() -> None:
        (small_memory / "cgroup.procs").write_text(str(os.getpid()))

    record = toy.run("eat", before=enter).record
    assert_outcome(record, "oom", "killed by the kernel: out of host memory")
    limit = record["environment"]["system"]["cgroup_memory_limit_bytes"]
    assert limit == 2**27, "the limit that was hit is not recorded"


def assert_temporary_folder_of_its_own(toy: Bench) -> None:
    """Fail if ranks share a temporary folder with others: compilers load code from it."""
    folders = set()
    for rank in toy.processes("WORLD_SIZE=2"):
        variables = Path(f"/proc/{rank}/environ").read_text().split("\0")
        folders |= {Path(v.partition("=")[2]) for v in variables if v.startswith("TMPDIR=")}
    own = {folder for folder in folders if folder != toy.temporary}
    modes = {path.stat().st_mode & 0o777 for folder in own for path in (folder, folder.parent)}
    for folder in folders:
        (folder / "torchinductor_somebody").mkdir()
    assert len(folders) == len(own) == 1, f"not that of the run: {folders}"
    assert modes == {0o700}


def test_shared_memory_of_those_that_are_ended_goes_and_no_other() -> None:
    name = f"test_{uuid.uuid4().hex}"
    stranger = Path(descendants.SHARED, f"paddle_{os.getpid()}_0_{name}")
    stranger.touch()
    try:
        program = ROOT / "tests" / "harness" / "programs" / "share_memory.py"
        path = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
        number = int(subprocess.check_output([sys.executable, program, name], env=path))
        names = [name, f"paddle_{number}_0_1", f"mx_{number:x}_1"]
        there = [name for name in names if Path(descendants.SHARED, name).exists()]
        assert not there, "left by a process that was ended"
        assert stranger.exists(), "of a process that goes on"
    finally:
        stranger.unlink()


#: Launcher that gives ranks half a second to meet.
IMPATIENT = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
from harness.processes import outcome
outcome.MEETING_SECONDS = 0.5
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0] + "/harness", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("accelerator", "moment", "phase"),
    [("cpu", "start", "start"), ("cuda", "all_reduce", "pre-flight check")],
)
def test_ranks_that_never_meet_end_long_before_the_time_limit(
    toy: Bench, accelerator: str, moment: str, phase: str
) -> None:
    python, _, *arguments = toy.command(devices_per_node=2, accelerator=accelerator)
    command = [python, "-c", IMPATIENT, str(ROOT / "scripts"), *arguments]
    subprocess.run(command, env=toy.environment(f"hang_{moment}"), check=False, timeout=PATIENCE)
    record = toy.read_record()
    assert record["status"] == "failed"
    assert record["reason"].startswith("rank 0: ranks did not meet within 0.5 s")
    assert record["reason"].endswith(f", during: {phase}")
    assert ("NCCL_P2P_DISABLE=1" in record["reason"]) == (accelerator == "cuda")
    toy.assert_nothing_left()


def test_a_rank_alone_has_nobody_to_meet(toy: Bench) -> None:
    python, _, *arguments = toy.command()
    command = [python, "-c", IMPATIENT, str(ROOT / "scripts"), *arguments]
    subprocess.run(command, env=toy.environment("sleep=0.3"), check=False, timeout=PATIENCE)
    assert toy.read_record()["status"] == "ok"
