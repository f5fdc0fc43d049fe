"""CPU quotas of control groups: the cores that a run uses, and its flag."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from core import control_groups
from framebench.machine import local
from framebench.records.fields.flags import disturbed

from ...bench import Bench
from ...processes import wait_for


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of made-up control groups; the file ``own`` in it lists this process's."""
    monkeypatch.setattr(control_groups, "MOUNTED", str(tmp_path))
    monkeypatch.setattr(control_groups, "OWN", str(tmp_path / "own"))
    return tmp_path


def test_the_tightest_quota_of_nested_groups_counts(groups: Path) -> None:
    (groups / "own").write_text("0::/outer/inner\n")
    assert (control_groups.cpu_limit(), control_groups.whole_cores()) == (None, None)
    write(groups / "outer", cpu_max="150000 100000", cpu_stat="nr_periods 9\nnr_throttled 3\n")
    write(groups / "outer" / "inner", cpu_max="max 100000", cpu_stat="nr_throttled 4\n")
    assert (control_groups.cpu_limit(), control_groups.whole_cores()) == (1.5, 1)
    assert control_groups.throttled_periods() == 7
    write(groups / "outer" / "inner", cpu_max="50000 100000")
    assert (control_groups.cpu_limit(), control_groups.whole_cores()) == (0.5, 1)
    machine = local.detect()
    assert machine.cores == 1
    if len(os.sched_getaffinity(0)) > 1:
        assert machine.limited == "a CPU quota of 0.5 cores"
        assert local.detect(1).limited == "a CPU quota of 0.5 cores and --cores 1"


def test_quotas_of_version_1_count_too(groups: Path) -> None:
    (groups / "own").write_text("5:memory:/x\n2:cpu,cpuacct:/outer/inner\n0::/\n")
    inner = groups / "cpu" / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder, quota in ((inner, "-1"), (inner.parent, "350000")):
        (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (folder / "cpu.cfs_period_us").write_text("100000\n")
    assert (control_groups.cpu_limit(), control_groups.whole_cores()) == (3.5, 3)


@pytest.fixture
def half_a_core() -> Iterator[Path]:
    """Return a real control group of version 1 with half a core."""
    folder = Path(f"/sys/fs/cgroup/cpu/framebench-test-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def test_a_run_keeps_to_the_quota_and_throttling_disturbs_it(toy: Bench, half_a_core: Path) -> None:
    def join() -> None:
        (half_a_core / "cgroup.procs").write_text(str(os.getpid()))

    toy.hold.touch()
    launcher = subprocess.Popen(
        toy.command(), env=toy.environment("hold=4"), preexec_fn=join, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    toy.wait_for_phase("timed window", 1)
    quota = half_a_core / "cpu.cfs_quota_us"
    quota.write_text("1000")
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=join)
    wait_for(lambda: " 0" not in (half_a_core / "cpu.stat").read_text().splitlines()[1], "a stop")
    busy.kill()
    busy.wait()
    quota.write_text("50000")
    toy.hold.unlink()
    record = toy.finish(launcher).record
    many = toy.run("", before=join, devices_per_node=2, output=toy.folder / "many.json")
    assert record["status"] == "ok", record["reason"]
    assert record["environment"]["hardware"]["cores"] == 1
    assert record["watch"]["throttled_periods"] > 0
    assert "a control group's CPU quota stopped the run in" in disturbed(record)
    assert many.status == 0, many.stderr
    refused = json.loads((toy.folder / "many.json").read_text())
    assert refused["status"] == "failed", "a machine's quota is no property of a framework"
    assert "need 2 cores; this process may use 1" in refused["reason"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_run_takes_no_more_cores_than_it_may(toy: Bench) -> None:
    record = toy.run("", accelerator="cuda", cores=1).record
    assert record["ranks"][0]["settings"]["threads"] == 1
    assert record["environment"]["hardware"]["cores"] == 1
