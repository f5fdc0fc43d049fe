"""CPU quotas of control groups: the cores that a run uses, and its flag."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from core import limits
from framebench.machine import local

from ...bench import Bench


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of made-up control groups; the file ``own`` in it lists this process's."""
    monkeypatch.setattr(limits, "MOUNTED", str(tmp_path))
    monkeypatch.setattr(limits, "OWN", str(tmp_path / "own"))
    return tmp_path


def test_the_tightest_quota_of_nested_groups_counts(groups: Path) -> None:
    (groups / "own").write_text("0::/outer/inner\n")
    assert (limits.cpu_limit(), limits.whole_cores()) == (None, None)
    write(groups / "outer", cpu_max="150000 100000", cpu_stat="nr_periods 9\nnr_throttled 3\n")
    write(groups / "outer" / "inner", cpu_max="max 100000", cpu_stat="nr_throttled 4\n")
    assert (limits.cpu_limit(), limits.whole_cores()) == (1.5, 1)
    assert limits.throttled_periods() == 7
    write(groups / "outer" / "inner", cpu_max="50000 100000")
    assert (limits.cpu_limit(), limits.whole_cores()) == (0.5, 1)
    assert local.detect().cores == 1
    if len(os.sched_getaffinity(0)) > 1:
        assert local.detect().most_cores == 1


def test_quotas_of_version_1_count_too(groups: Path) -> None:
    (groups / "own").write_text("5:memory:/x\n2:cpu,cpuacct:/outer/inner\n0::/\n")
    inner = groups / "cpu" / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder, quota in ((inner, "-1"), (inner.parent, "350000")):
        (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (folder / "cpu.cfs_period_us").write_text("100000\n")
    assert (limits.cpu_limit(), limits.whole_cores()) == (3.5, 3)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_run_takes_no_more_cores_than_it_may(toy: Bench) -> None:
    record = toy.run("", accelerator="cuda", cores=1).record
    assert record["ranks"][0]["settings"]["threads"] == 1
    assert record["environment"]["hardware"]["cores"] == 1
