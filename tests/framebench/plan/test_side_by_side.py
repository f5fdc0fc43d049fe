"""Concurrent runs: their number and duration, and their separation from runs alone."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from framebench.config.validation import ConfigError
from framebench.machine import local
from framebench.machine.local import Machine
from framebench.plan.case_settings import request
from framebench.plan.plan_text import describe
from framebench.plan.planning import Plan, make_plan, remaining
from framebench.plan.side_by_side import Room, of_first_round
from framebench.records import record_sets, searches
from framebench.records.fields.disturbance import disturbed
from framebench.runs import commands, peak_flops, total, verify
from harness.devices import devices, lease

from ..made_up_runs import build, in_markdown, repeats
from ..settings import CATALOG, SUITE, changed, settings
from ..table_rows import row
from ..watched import GPU, as_suite_asks, save, watch

# ---- number -------------------------------------------------------------------------------------

TWO = Room(whole=2, per_device=1, in_cores=True)


@pytest.mark.parametrize(
    ("room", "devices", "cores", "threads"),
    [
        (TWO, 1, 2, 1),
        (TWO, 2, 2, 2),
        (TWO, 1, 1, 1),
        (TWO, 2, 1, 1),  # alone, with both cores
        (TWO, 1, 64, 32),  # more than the machine has: one run at a time
        (TWO, 2, 64, 64),
        (Room(16, 4, in_cores=True), 2, 16, 8),
        (Room(16, 4, in_cores=True), 1, 6, 4),
        (Room(5, 2, in_cores=True), 1, 5, 2),  # two runs, and a core is left
        (Room(8, 1, in_cores=False), 1, 96, 12),  # GPUs, independent of the cores
        (Room(8, 1, in_cores=False), 8, 96, 96),
        (Room(8, 1, in_cores=False), 1, 4, 1),
        (Room(8, 1, in_cores=False), 8, 4, 4),
    ],
)
def test_threads_of_a_job(room: Room, devices: int, cores: int, threads: int) -> None:
    assert room.threads(devices, cores) == threads


TOPOLOGIES: dict[str, tuple[int, Callable[[int], list[int]]]] = {
    "8 cores": (8, lambda core: [core]),
    "7 cores with 2 threads": (14, lambda core: [core % 7, core % 7 + 7]),
    "5 cores with 2 threads in turn": (10, lambda core: [core // 2 * 2, core // 2 * 2 + 1]),
    "2 large cores with 2 threads, 4 small": (
        8, lambda core: [core // 2 * 2, core // 2 * 2 + 1] if core < 4 else [core]
    ),
}  # fmt: skip


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("per_device", [1, 2, 3])
def test_what_is_started_gets_its_devices_at_once(
    tmp_path: Path, topology: str, per_device: int
) -> None:
    """Fail if a started job ever waits for devices, in any order and with any --cores."""
    count, siblings = TOPOLOGIES[topology]
    most_devices = count // per_device
    available = {
        wanted: devices.available("cpu", per_device, range(count), {}, wanted, siblings)
        for wanted in range(1, most_devices + 1)
    }
    here = Machine(count, 0, threads_per_core=max(len(siblings(core)) for core in range(count)))
    loaded = settings(
        tmp_path, changed(devices_per_node=[1]), side_by_side=True, cores_per_device=per_device
    )
    room = make_plan(loaded, CATALOG, here, None).room
    assert room is not None
    draw = random.Random(1)
    for cores in (1, count - 1, count, 3 * count):
        running: list[tuple[int, list[int]]] = []
        most = 0
        for _ in range(150):
            wanted = draw.randint(1, most_devices)
            threads = room.threads(wanted, cores)
            assert 1 <= threads <= cores
            if sum(used for used, _ in running) + threads <= cores:
                taken, files = lease.take(str(tmp_path), wanted, available[wanted])
                assert len(taken) == wanted, "it was started and must wait"
                running.append((threads, files))
                most = max(most, len(running))
            elif running:
                lease.close(running.pop(draw.randrange(len(running)))[1])
        for _, files in running:
            lease.close(files)
        if cores >= count:
            assert most >= min(room.at_a_time, 2), "they followed each other"


def test_the_threads_of_a_core_are_counted(tmp_path: Path) -> None:
    for core in range(8):
        folder = tmp_path / "devices" / "system" / "cpu" / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core % 4},{core % 4 + 4}\n")
    assert local.threads_of_cores(range(8), tmp_path) == [2, 2, 2, 2]
    assert local.threads_of_cores(range(5), tmp_path) == [2, 1, 1, 1], (
        "the others are not ours to use"
    )
    assert local.threads_of_cores(range(8), tmp_path / "nothing") == [1] * 8


# ---- in which order ----------------------------------------------------------------


def test_no_run_starts_before_those_of_earlier_rounds() -> None:
    waiting = [("a", 2), ("b", 1), ("c", None), ("d", 1), ("e", 3)]
    kept = of_first_round(waiting, lambda job: job[1])
    assert [name for name, _ in kept] == ["b", "c", "d"]
    assert of_first_round([("c", None)], lambda job: job[1]) == [("c", None)]


def made(tmp_path: Path, beside: bool, here: Machine = Machine(2, 0), **axes: Any) -> Plan:  # noqa: B008
    loaded = settings(tmp_path, changed(**axes), side_by_side=beside, cores_per_device=1)
    return make_plan(loaded, CATALOG, here, None)


def test_the_plan_says_so_and_expects_less_time(tmp_path: Path) -> None:
    alone, beside = (made(tmp_path, mode, mode=["train", "inference"]) for mode in (False, True))
    serial = sum(run.seconds for run in alone.pending)
    assert remaining(alone) == serial
    assert serial / 2 <= remaining(beside) < 0.8 * serial
    assert (total.at_once(alone), total.at_once(beside)) == (1, serial / remaining(beside))
    assert "side by side: up to 2 runs with one device" in describe(beside)
    assert "side by side" not in describe(alone)
    every = made(tmp_path, True, devices_per_node=[2])
    assert remaining(every) == sum(run.seconds for run in every.pending)


def test_a_gpu_is_a_device_of_the_room(tmp_path: Path) -> None:
    loaded = settings(tmp_path, changed(devices_per_node=[1, 4]), side_by_side=True)
    room = make_plan(loaded, CATALOG, Machine(64, 8), None).room
    assert room == Room(8, 1, in_cores=False)


# ---- what is asked of the harness ----------------------------------------------------------------


def test_all_that_measures_leases_its_devices(tmp_path: Path) -> None:
    folder = f"{tempfile.gettempdir()}/framebench-devices-{os.geteuid()}"
    for beside in (True, False):
        plan = made(tmp_path, beside, batch_per_device=[2, "max"])
        (one, *_) = verify.full_size(plan, CATALOG)
        asked = [
            commands.arguments(plan, plan.pending[0]),
            commands.search_arguments(plan, plan.unsearched[0]),
            verify.arguments(plan, one, "reference"),
            peak_flops.arguments(plan, peak_flops.wanted(plan)[0]),
        ]
        for words in asked:
            actual = dict(itertools.pairwise(words)).get("--lease")
            # comparisons are not timed: they always share
            assert actual == (folder if beside or "verification" in words else None), words


def test_a_run_beside_others_is_another_run(tmp_path: Path) -> None:
    alone, beside = (made(tmp_path, mode) for mode in (False, True))
    assert not set(alone.folders.values()) & set(beside.folders.values())
    asked = request("pytorch", alone.settings, alone.capacity, alone.software)
    assert "side_by_side" not in asked, "what was measured before there was such a thing is lost"


@pytest.mark.parametrize("beside", [True, False])
def test_only_records_measured_as_asked_count(tmp_path: Path, beside: bool) -> None:
    suite = {**SUITE, "repeats": 1}
    results = str(tmp_path / "out")
    loaded = settings(tmp_path, suite, results=results, side_by_side=beside)
    (folder,) = make_plan(loaded, CATALOG, Machine(2, 0), None).folders.values()
    for there in (True, False):
        content = as_suite_asks()
        content["settings"]["side_by_side"] = there
        save(tmp_path / "out" / "runs" / folder / "r1.json", content)
        cached = record_sets.load(tmp_path / "out" / "runs")
        (run,) = make_plan(loaded, CATALOG, Machine(2, 0), cached).runs
        assert run.status == ("ok" if there == beside else ""), "a number of another kind"


def test_the_search_of_a_case_beside_others_is_known_by_its_runs(tmp_path: Path) -> None:
    content = as_suite_asks()
    content["settings"]["side_by_side"] = True
    save(tmp_path / "r1.json", content)
    (run,) = record_sets.load(tmp_path).runs
    assert run.conditions.side_by_side
    left = {
        **content,
        "parameters": {"mode": content["kind"]},
        "framework_version": run.case.framework_version,
    }
    actual = searches.Result("ok", "", 2, left)
    assert searches.key_of(run) == actual.key


def test_side_by_side_and_alone_share_neither_row_nor_ratio() -> None:
    beside = repeats(150.0, 151.0, devices_per_node=2, side_by_side=True)
    runs = [*repeats(100.0, 101.0), *beside]
    built = build(runs)
    assert len(built["summary"]) == 2
    two = row(built["weak_scaling"], devices=2)
    assert math.isnan(two["speedup"])
    assert two["reason"] == "no 1n1g run"
    text = in_markdown("summary", built["summary"])
    assert "*side by side*: other runs had the rest of the machine" in text
    alone = build(repeats(100.0, 101.0))["summary"]
    assert "side by side" not in in_markdown("summary", alone)


@pytest.mark.parametrize(
    ("given", "found"),
    [(True, True), ("true", True), ("false", False), (False, False)],
)
def test_from_the_command_line(tmp_path: Path, given: object, found: bool) -> None:
    assert settings(tmp_path, side_by_side=given).side_by_side is found


def test_on_a_cluster_the_scheduler_shares_devices_out(tmp_path: Path) -> None:
    cluster = {"nodes": 2, "cores_per_node": 8, "memory_gib": 32}
    with pytest.raises(ConfigError, match=r"side_by_side: found True beside cluster; .* false"):
        settings(tmp_path, side_by_side=True, cluster=cluster)


# ---- what disturbs such a run --------------------------------------------------------------------

NEIGHBOUR = {"machine_foreign_load": {"mean": 4.0, "max": 6.0}}
PINNED = {"side_by_side": True, "cores_per_device": 1}
UNPINNED = {"side_by_side": True, "cores_per_device": None}
OWN_CORES = {"foreign_load": {"mean": 1.0, "max": 2.0}}


def test_neighbours_do_not_disturb_a_run_that_is_measured_with_them() -> None:
    assert disturbed({"watch": watch(**NEIGHBOUR), "settings": PINNED}) == ""
    assert disturbed({"watch": watch(**NEIGHBOUR, **OWN_CORES), "settings": UNPINNED}) == ""
    alone = {"side_by_side": False, "cores_per_device": 1}
    assert "of the machine's cores" in disturbed({"watch": watch(**NEIGHBOUR), "settings": alone})


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (watch(steal=0.5), "the hypervisor took"),
        (watch(throttle_events=3), "throttled for its heat"),
        (watch(memory_available_bytes_min=2**28), "MiB of memory were available"),
        (watch(gpus=[{**GPU, "other_processes": [7]}]), "GPU 0 had other processes: 7"),
    ],
)
def test_what_disturbs_other_runs_disturbs_it_too(seen: dict[str, Any], why: str) -> None:
    for given in (PINNED, UNPINNED):
        assert why in disturbed({"watch": seen, "settings": given})


def test_on_its_own_cores_is_nobody_else() -> None:
    actual = disturbed({"watch": watch(**NEIGHBOUR, **OWN_CORES), "settings": PINNED})
    assert "1.00 of the run's cores (2) busy" in actual
    assert "machine" not in actual


def test_the_load_of_neighbours_stays_in_the_record(tmp_path: Path) -> None:
    content = as_suite_asks(watch=watch(**NEIGHBOUR))
    content["settings"]["side_by_side"] = True
    save(tmp_path / "r1.json", content)
    (run,) = record_sets.load(tmp_path).runs
    assert not any(flag.name == "disturbed" for flag in run.flags)
    assert run.record is not None
    assert json.loads(run.record.read_text())["watch"]["machine_foreign_load"]["mean"] == 4.0
