"""Runs side by side: which may run so, how long they take, and how other runs are kept apart."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan.case_settings import asked_conditions
from framebench.plan.plan import Plan
from framebench.plan.plan_text import describe
from framebench.records.flags import disturbed
from framebench.runs import commands

from ..made_up_runs import build, in_markdown, repeats
from ..settings import changed, plan, settings
from ..table_rows import row
from ..watched import watch


def made(tmp_path: Path, beside: bool, **axes: Any) -> Plan:
    return plan(tmp_path, changed(**axes), machine=Machine(64, 8), side_by_side=beside)


def test_a_plan_with_runs_side_by_side_says_so_and_expects_less_time(tmp_path: Path) -> None:
    batches = [1, 2, 3, 4]
    alone, beside = (made(tmp_path, mode, batch_per_device=batches) for mode in (False, True))
    serial = sum(run.seconds for run in alone.pending)
    assert alone.seconds_for(alone.pending) == pytest.approx(serial)
    assert serial / 8 <= beside.seconds_for(beside.pending) < serial / 2
    assert "side by side: up to 8 runs of one GPU" in describe(beside)
    assert "side by side" not in describe(alone)
    every = made(tmp_path, True, devices_per_node=[2])
    serial = sum(run.seconds for run in every.pending)
    assert every.seconds_for(every.pending) == pytest.approx(serial)


def test_runs_of_one_gpu_go_side_by_side_and_others_alone(tmp_path: Path) -> None:
    for beside in (True, False):
        both = made(tmp_path, beside, devices_per_node=[1, 2], batch_per_device=[2, "max"])
        for run in both.pending:
            shares = beside and run.case.devices == 1
            assert ("--side-by-side" in commands.arguments(both, run)) == shares
            asked = asked_conditions(run.case, both.settings, both.capacity)
            assert asked.side_by_side is shares
        for search in both.unsearched:
            shares = beside and search.case.devices == 1
            assert ("--side-by-side" in commands.search_arguments(both, search.case)) == shares


@pytest.mark.parametrize("machine", [Machine(64, 0), Machine(64, 1)])
def test_it_needs_several_gpus(tmp_path: Path, machine: Machine) -> None:
    with pytest.raises(ConfigError, match=r"side_by_side: found True; allowed .* false"):
        plan(tmp_path, machine=machine, side_by_side=True)


def test_side_by_side_and_alone_share_neither_row_nor_ratio() -> None:
    beside = repeats(150.0, 151.0, devices_per_node=2, side_by_side=True)
    runs = [*repeats(100.0, 101.0), *beside]
    built = build(runs)
    assert len(built["summary"]) == 2
    two = row(built["weak_scaling"], devices=2)
    assert math.isnan(two["speedup"])
    assert two["reason"] == "no 1n1g run"
    assert "| side by side |" in in_markdown("summary", built["summary"])
    alone = build(repeats(100.0, 101.0))["summary"]
    assert "side by side" not in in_markdown("summary", alone)


def test_on_a_cluster_the_scheduler_shares_devices_out(tmp_path: Path) -> None:
    cluster = {"nodes": 2, "cores_per_node": 8, "memory_gib": 32}
    with pytest.raises(ConfigError, match=r"side_by_side: found True beside cluster; .* false"):
        settings(tmp_path, side_by_side=True, cluster=cluster)


# ---- disturbance of runs side by side ------------------------------------------------------------

NEIGHBOUR = {"machine_foreign_load": {"mean": 4.0, "max": 6.0}}
PINNED = {"side_by_side": True, "cores_per_device": 1}
UNPINNED = {"side_by_side": True, "cores_per_device": None}
OWN_CORES = {"foreign_load": {"mean": 1.0, "max": 2.0}}


def test_neighbours_do_not_disturb_a_run_that_is_measured_with_them() -> None:
    assert disturbed({"watch": watch(**NEIGHBOUR), "settings": PINNED}) == ""
    assert disturbed({"watch": watch(**NEIGHBOUR, **OWN_CORES), "settings": UNPINNED}) == ""
    alone = {"side_by_side": False, "cores_per_device": 1}
    assert "of the machine's cores" in disturbed({"watch": watch(**NEIGHBOUR), "settings": alone})


def test_load_on_the_cores_of_a_pinned_run_is_a_disturbance() -> None:
    actual = disturbed({"watch": watch(**NEIGHBOUR, **OWN_CORES), "settings": PINNED})
    assert "1.00 of the run's cores (2) busy" in actual
    assert "machine" not in actual
