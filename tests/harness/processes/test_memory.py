"""Memory limit: the memory that counts, and that no run exceeds the limit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from core.limits import parse_limit
from harness.processes import descendants

from ...bench import Bench
from ..machine.fake_machine import process

MIB = 2**20
GIB = 2**30


@pytest.mark.parametrize(
    ("text", "total", "size"),
    [("16GiB", GIB, 16 * GIB), ("1.5MiB", GIB, 3 * MIB // 2), ("25%", 8 * GIB, 2 * GIB)],
)
def test_limits_are_sizes_or_shares(text: str, total: int, size: int) -> None:
    assert parse_limit(text).bytes_of(total) == size


@pytest.mark.parametrize("text", ["16GB", "101%"])
def test_other_limits_are_refused(text: str, toy: Bench) -> None:
    with pytest.raises(ValueError, match="must be like 16GiB"):
        parse_limit(text)
    done = toy.run("", f"--memory-limit={text}")
    assert (done.status, done.record) == (2, None)
    assert "--memory-limit: must be like 16GiB" in done.stderr


def test_who_has_a_part_of_the_machine_has_that_part_of_its_memory() -> None:
    share, size = parse_limit("40%"), parse_limit("64MiB")
    whole = descendants.allowed_memory(share)
    assert whole
    assert descendants.allowed_memory(share, part=0.25) == pytest.approx(whole / 4, rel=1e-6)
    assert descendants.allowed_memory(size, part=0.25) == 64 * MIB, "a size is a size"


class Processes:
    """Made-up /proc with one process of this launcher's run, and one of another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number, parent in ((20, os.getpid()), (21, 1), (1, 0)):
            process(str(folder), number, parent, own=0.0)
        (folder / "21" / "status").write_text(f"RssAnon: {GIB} kB\n")

    def hold(self, together: int, alone: int) -> None:
        status = f"VmRSS:\t999999999 kB\nRssAnon:\t{together // 1024} kB\nRssShmem:\t0 kB\n"
        (self.folder / "20" / "status").write_text(status)
        rollup = f"Pss: 999999999 kB\nPss_Anon: {alone // 1024} kB\nPss_Shmem: 0 kB\n"
        (self.folder / "20" / "smaps_rollup").write_text(rollup)

    def memory(self) -> descendants.HeldMemory:
        return descendants.HeldMemory(16 * GIB, proc=str(self.folder))


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def test_what_processes_share_counts_once(processes: Processes) -> None:
    processes.hold(17 * GIB, 9 * GIB)
    held = processes.memory()
    assert held.reason_to_end() is None
    assert held.peak == 9 * GIB
    (processes.folder / "20" / "smaps_rollup").unlink()  # some kernels lack this file
    assert "17.0 GiB" in str(held.reason_to_end())


def test_what_others_hold_is_recorded(processes: Processes) -> None:
    processes.hold(GIB // 4, GIB // 4)
    (processes.folder / "meminfo").write_text(
        f"MemTotal: {24 * 2**20} kB\nMemAvailable: {GIB // 2048} kB\n"
    )
    held = processes.memory()
    assert held.reason_to_end() is None, "it is the kernel's to end a run that others leave nothing"
    assert held.fields()["others_bytes"] == 24 * GIB - GIB // 2 - GIB // 4


def test_a_run_over_its_limit_is_out_of_memory(toy: Bench) -> None:
    # 1 GiB in 20 s, so that late checks find the excess, too
    done = toy.run("fill=32,fill_pause=0.02", memory_limit="64MiB", batch_per_device=32)
    record = done.record
    assert record["status"] == "oom", record["reason"]
    assert "of the limit of 0.0625 GiB" in record["reason"]
    assert "during: build" in record["reason"]
    assert record["memory"]["limit_bytes"] == 64 * MIB
    assert 64 * MIB < record["memory"]["peak_bytes"] < 1024 * MIB, "it was left to take all"


def test_the_ranks_share_the_limit(toy: Bench) -> None:
    record = toy.run("fill=16,sleep=0.2").record
    assert record["status"] == "ok", record["reason"]
    assert 64 * MIB < record["memory"]["peak_bytes"] < 128 * MIB
    assert "limit_bytes" not in record["memory"], "nobody asked for one"
    toy.output.unlink()
    both = toy.run("fill=16,hang", devices_per_node=2, memory_limit="128MiB").record
    assert both["status"] == "oom", both["reason"]


def test_processes_that_a_rank_started_count_too(toy: Bench) -> None:
    done = toy.run("hungry_grandchild=200,hang", memory_limit="100MiB")
    assert done.record["status"] == "oom", done.record["reason"]
