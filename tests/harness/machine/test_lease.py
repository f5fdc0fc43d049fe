"""Runs that share a machine: no device is used by two runs at once, and none is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from harness.adapter import Mismatch
from harness.devices import devices, lease
from harness.devices.devices import Device
from harness.devices.lease import leased
from harness.machine import cores
from harness.processes import memory

from ...bench import Bench
from ...processes import PATIENCE, wait_for
from ..starting import start_program

ALL = cores.allowed()
PHYSICAL = {min([core, *cores.siblings(core)]) for core in ALL}
TWO = [Device("0", [0], ["core-0"]), Device("1", [1], ["core-1"])]


def names(leased: lease.Lease) -> list[str]:
    return [device.name for device in leased.devices]


# ---- devices -------------------------------------------------------------------------------------


@pytest.fixture
def no_numa_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove NUMA nodes: the kernel does not know made-up cores."""
    monkeypatch.setattr(cores, "by_numa_node", dict)


@pytest.mark.usefixtures("no_numa_nodes")
def test_a_core_is_taken_with_the_other_threads_of_its_physical_core() -> None:
    """Fail if threads of a physical core are split: four cores of two threads, in Linux's
    numbering."""

    def siblings(core: int) -> list[int]:
        return [core % 4, core % 4 + 4]

    for expected in (1, 2):
        actual = devices.available("cpu", 2, range(8), {}, expected, siblings)
        assert [device.cores for device in actual] == [[0, 1], [2, 3]]
        assert [device.locks for device in actual] == [["core-0", "core-1"], ["core-2", "core-3"]]
    many = devices.available("cpu", 2, range(8), {}, 3, siblings)
    assert [device.cores for device in many] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert [device.locks for device in many] == [[f"core-{number}"] for number in range(4)]
    alone = devices.available("cpu", 3, range(8), {}, 2, lambda core: [core])
    assert [device.cores for device in alone] == [[0, 1, 2], [3, 4, 5]], "six is no device of 3"


def gpu(uuid: str, name: str = "Example GPU") -> dict[str, Any]:
    address = f"00000000:0{uuid[-1].upper()}:00.0"
    return {
        "name": name,
        "memory_bytes": 2**36,
        "driver": "550.1",
        "uuid": uuid,
        "pci_address": address,
    }


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [gpu(f"GPU-{letter}{letter}") for letter in "abc"]
    monkeypatch.setattr(devices.hardware, "gpus", lambda: known)


ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, {"0": "gpu-GPU-aa", "1": "gpu-GPU-bb", "2": "gpu-GPU-cc"}),
        ("2,0", {"2": "gpu-GPU-cc", "0": "gpu-GPU-aa"}),
        (" GPU-b , MIG-7", {"GPU-b": "gpu-GPU-bb", "MIG-7": "gpu-MIG-7"}),
        ("", {}),
    ],
)
def test_a_gpu_has_one_lock_however_it_is_called(
    visible: str | None, found: dict[str, str]
) -> None:
    arguments = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    created = devices.available("cuda", None, ALL, {**ORDER, **arguments})
    assert [(device.name, device.locks) for device in created] == [
        (name, [lock]) for name, lock in found.items()
    ]
    assert not any(device.cores for device in created), "nobody asked for pinned ranks"


@pytest.mark.usefixtures("gpus")
def test_numbers_in_an_order_of_cudas_own_are_refused() -> None:
    own = {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    with pytest.raises(Mismatch, match="which GPU a number means"):
        devices.available("cuda", None, ALL, own)
    by_uuid = {**own, "CUDA_VISIBLE_DEVICES": "GPU-bb"}
    assert [d.locks for d in devices.available("cuda", None, ALL, by_uuid)] == [["gpu-GPU-bb"]]


@pytest.mark.usefixtures("gpus")
@pytest.mark.usefixtures("no_numa_nodes")
def test_a_gpu_has_the_same_cores_whoever_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a GPU's cores depend on the viewer: nearby cores are dealt out among all GPUs."""

    def near(addresses: list[str], usable: list[int]) -> list[list[int]]:
        assert len(addresses) == 3, "the neighbours' GPUs were forgotten"
        return [[0, 1], [2, 3], [4, 5]]

    monkeypatch.setattr(devices.cores_of, "near_gpus", near)
    visible = {**ORDER, "CUDA_VISIBLE_DEVICES": "2,GPU-aa"}
    actual = devices.available("cuda", None, range(8), visible)
    assert [device.cores for device in actual] == [[4, 5], [0, 1]]
    unknown = {**ORDER, "CUDA_VISIBLE_DEVICES": "2,MIG-7"}
    actual = devices.available("cuda", None, range(8), unknown)
    assert [device.cores for device in actual] == [[], []], "all ranks are pinned, or none"
    arguments = devices.available("cuda", 3, range(8), ORDER)
    assert [device.cores for device in arguments] == [[0, 1, 2], [3, 4, 5]], "none for the third"


@pytest.mark.usefixtures("gpus")
def test_only_the_leased_gpus_are_of_the_run() -> None:
    own = devices.available("cuda", None, ALL, {**ORDER, "CUDA_VISIBLE_DEVICES": "1"})
    assert devices.among(devices.hardware.gpus(), own) == [gpu("GPU-bb")]


# ---- the locks -----------------------------------------------------------------------------------


def test_the_first_devices_that_are_free_are_taken(tmp_path: Path) -> None:
    folder = str(tmp_path / "locks")
    six = [Device(str(number), [number], [f"core-{number}"]) for number in range(6)]
    with ExitStack() as stack:
        first = stack.enter_context(leased(folder, 2, six, 1))
        with leased(folder, 1, six, 1) as second:
            assert (names(first), names(second)) == (["0", "1"], ["2"])
            assert (first.total, first.cores, first.refused) == (6, [0, 1], None)
            third = stack.enter_context(leased(folder, 2, six, 1))
            assert names(third) == ["3", "4"]
        assert names(stack.enter_context(leased(folder, 1, six, 1))) == ["2"], "it was given back"
    with leased(folder, 6, six, 1) as everything:
        assert len(everything.devices) == 6


def test_threads_of_one_physical_core_are_never_two_runs(tmp_path: Path) -> None:
    both = [Device("0", [0], ["core-0"]), Device("1", [1], ["core-0"])]
    with leased(str(tmp_path), 2, both, 1) as held:
        assert names(held) == ["0", "1"], "a run may have both"
    with leased(str(tmp_path), 1, both, 1), leased(str(tmp_path), 1, both, 0.1) as other:
        assert other.refused is not None


def test_who_waits_in_vain_is_reported_so(tmp_path: Path) -> None:
    with leased(str(tmp_path), 1, TWO, 1), leased(str(tmp_path), 2, TWO, 0.3) as waited:
        assert waited.refused is not None
        status, reason = waited.refused
        assert status == "timeout"
        assert "0.3 s was reached while waiting for 2 of 2 device(s)" in reason
        assert "others have all but 1" in reason
        assert 0.3 <= waited.waited < 60
        with leased(str(tmp_path), 1, TWO, 1) as other:
            assert names(other) == ["1"], "what it could not use was kept"


def test_more_than_there_are_is_no_reason_to_wait(tmp_path: Path) -> None:
    with leased(str(tmp_path), 3, TWO, 600) as refused:
        assert refused.refused == ("unsupported", "3 device(s) are needed; there are 2")
        assert refused.fields() == {"devices": [], "of": 2, "waited_seconds": 0.0}


def is_taken(locks: str, name: str) -> bool:
    os.makedirs(locks, 0o700, exist_ok=True)
    file = lease.try_lock(locks, name)
    if file is not None:
        os.close(file)
    return file is None


def test_who_needs_many_is_not_overtaken_by_who_needs_few(tmp_path: Path) -> None:
    order = []

    def take(name: str, expected: int) -> None:
        with leased(str(tmp_path), expected, TWO, 600):
            order.append(name)
            time.sleep(0.1)

    many = threading.Thread(target=take, args=("many", 2))
    few = threading.Thread(target=take, args=("few", 1))
    with leased(str(tmp_path), 1, TWO, 1):
        many.start()
        wait_for(lambda: is_taken(str(tmp_path), "turn"), "the first to wait")
        few.start()
        time.sleep(0.5)
        assert order == [], "a device was free, but not for those who come later"
    many.join()
    few.join()
    assert order == ["many", "few"]


def test_only_a_folder_of_the_users_own_has_locks(tmp_path: Path) -> None:
    """Fail if locks are kept in another user's folder, a writable one, a link, or a file."""
    created = {name: tmp_path / name for name in ("loose", "linked", "file", "theirs")}
    created["loose"].mkdir(mode=0o700)
    created["loose"].chmod(0o777)
    (tmp_path / "own").mkdir(mode=0o700)
    created["linked"].symlink_to(tmp_path / "own")
    created["file"].touch()
    expected = {"loose": "found mode 777", "linked": "found no folder", "file": "found no folder"}
    if os.geteuid() == 0:
        created["theirs"].mkdir(mode=0o700)
        os.chown(created["theirs"], 65534, 65534)
        expected["theirs"] = "found a folder of user 65534"
    for name, wrong in expected.items():
        with leased(str(created[name]), 1, TWO, 600) as refused:
            assert refused.refused is not None
            status, reason = refused.refused
            assert status == "failed", "what can never be had is no matter of time"
            assert f"{created[name]}: {wrong}; allowed: a folder that you own" in reason


def test_a_lock_that_is_no_file_is_said_as_that(tmp_path: Path) -> None:
    os.mkfifo(lease.path_of(str(tmp_path), "core-0"))
    with leased(str(tmp_path), 2, TWO, 600) as refused:
        assert refused.refused is not None
        assert refused.refused[0] == "failed"
        assert "core-0.lock: found no regular file" in refused.refused[1]


def test_a_lock_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    with leased(str(tmp_path), 2, TWO, 1):
        pass
    for file in tmp_path.iterdir():
        file.unlink()
    with leased(str(tmp_path), 2, TWO, 1), leased(str(tmp_path), 1, TWO, 0) as other:
        assert other.refused is not None


def test_locks_in_different_folders_are_distinguished(tmp_path: Path) -> None:
    first, second = str(tmp_path / "a"), str(tmp_path / "a\udcff")
    with (
        leased(first, 2, TWO, 1),
        leased(second, 2, TWO, 1) as free,
        leased(first, 1, TWO, 0) as taken,
    ):
        assert (free.refused is None, taken.refused is None) == (True, False)


def test_who_waits_in_vain_learns_who_has_the_devices(tmp_path: Path) -> None:
    with leased(str(tmp_path), 2, TWO, 1), leased(str(tmp_path), 1, TWO, 0) as waited:
        assert waited.refused is not None
        assert f"fuser {lease.path_of(str(tmp_path), '*')} tells who" in waited.refused[1]


def test_no_device_is_ever_held_twice(tmp_path: Path) -> None:
    """Fail if a device is held twice.
    Eight processes take and release random numbers of devices, for random times; one that finds a
    mark of another on its device fails."""
    (tmp_path / "held").mkdir()
    arguments = (tmp_path / "locks", 10, tmp_path / "held")
    running = [start_program("lease_devices", *arguments) for _ in range(8)]
    for process in running:
        assert process.wait(PATIENCE) == 0, "a device was held twice, or one never got any"


def test_a_device_is_free_when_the_last_process_that_inherited_it_is_gone(tmp_path: Path) -> None:
    with leased(str(tmp_path), 1, TWO, 1) as held:
        child = subprocess.Popen(["sleep", "600"], pass_fds=held.files)
    with leased(str(tmp_path), 2, TWO, 0.2) as early:
        assert early.refused is not None, "its process is still there"
    child.kill()
    child.wait()
    with leased(str(tmp_path), 2, TWO, 0.2) as late:
        assert late.refused is None


# ---- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Bench]:
    """Return the bench of a second run."""
    bench = Bench(tmp_path / "other")
    bench.folder.mkdir()
    try:
        yield bench
        bench.assert_nothing_left()
    finally:
        for process in bench.processes():
            os.kill(process, signal.SIGKILL)


def span(record: dict[str, Any]) -> tuple[float, float]:
    start = datetime.fromisoformat(record["started"]).timestamp()
    return start, start + record["wall_seconds"]


@pytest.mark.skipif(len(PHYSICAL) < 2, reason="needs two physical cores")
def test_two_runs_go_side_by_side_on_cores_of_their_own(
    toy: Bench, other: Bench, tmp_path: Path
) -> None:
    locks = tmp_path / "locks"
    toy.hold.touch()
    first = toy.start("hold=4", lease=locks)
    toy.wait_for_phase("timed window", 1)
    assert os.sched_getaffinity(first.pid) == {ALL[0]}, "it works where its neighbours are timed"
    second = other.run("sleep=0.01", lease=locks).record
    toy.hold.unlink()
    actual = toy.finish(first).record
    assert [record["status"] for record in (actual, second)] == ["ok", "ok"]
    assert [record["lease"]["devices"] for record in (actual, second)] == [["0"], ["1"]]
    windows = [record["ranks"][0] for record in (actual, second)]
    starts = [rank["window_start"] for rank in windows]
    assert starts[0] < starts[1] < starts[0] + windows[0]["window_seconds"]
    assert [rank["cores"] for rank in windows] == [[ALL[0]], [ALL[1]]]
    assert [record["watch"]["cores"] for record in (actual, second)] == [[ALL[0]], [ALL[1]]]
    assert actual["settings"]["side_by_side"] is True
    assert actual["lease"]["of"] == len(ALL)
    assert actual["environment"]["hardware"]["cores"] == len(ALL), "of the machine, not of the run"
    whole = memory.allowed(memory.parse_limit("90%"), spare=False).limit
    assert actual["memory"]["limit_bytes"] == pytest.approx(whole / len(ALL), rel=1e-6)


def test_a_run_waits_for_all_its_devices(toy: Bench, other: Bench, tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    toy.hold.touch()
    first = toy.start("hold=4", lease=locks)
    toy.wait_for_phase("timed window", 1)
    second = other.start("", devices_per_node=len(ALL), lease=locks)
    wait_for(lambda: is_taken(str(locks), "turn"), "the second run to wait")
    toy.hold.unlink()
    actual, every = toy.finish(first).record, other.finish(second).record
    assert every["status"] == "ok", every["reason"]
    assert every["lease"]["waited_seconds"] > 0
    assert span(every)[0] > span(actual)[1], "it did not wait, or the wait is in its own time"
    assert sorted(core for rank in every["ranks"] for core in rank["cores"]) == sorted(ALL)


def test_a_run_that_cannot_get_its_devices_says_so(
    toy: Bench, other: Bench, tmp_path: Path
) -> None:
    locks = tmp_path / "locks"
    first = toy.start("hang", lease=locks)
    toy.wait_for_phase("warm-up", 1)
    done = other.run("", devices_per_node=len(ALL), lease=locks, time_limit=1)
    assert done.status == 0, done.stderr
    assert done.record["status"] == "timeout"
    assert f"while waiting for {len(ALL)} of {len(ALL)} device(s)" in done.record["reason"]
    assert done.record["ranks"] == []
    first.terminate()
    toy.finish(first)


def test_more_devices_than_there_are(toy: Bench, tmp_path: Path) -> None:
    record = toy.run("", devices_per_node=len(ALL) + 1, lease=tmp_path / "locks").record
    assert record["status"] == "unsupported"
    assert f"need {len(ALL) + 1} cores; this process may use {len(ALL)}" in record["reason"]


def holders(locks: Path, lock: str, bench: Bench) -> set[int]:
    """Return the processes of a run that have the lock's file open."""
    path = lease.path_of(str(locks), lock)
    return {
        process
        for process in bench.processes()
        for file in Path(f"/proc/{process}/fd").iterdir()
        if os.readlink(file) == path
    }


def test_killing_the_launcher_frees_its_devices_when_all_its_processes_are_gone(
    toy: Bench, tmp_path: Path
) -> None:
    locks = tmp_path / "locks"
    expected = len(ALL)
    everything = devices.available("cpu", 1, ALL, {})
    launcher = toy.start("hang,grandchild", devices_per_node=expected, lease=locks)
    toy.wait_for_phase("warm-up", expected)
    wait_for(lambda: len(toy.processes("RANK=0")) == 2, "rank 0 and its grandchild to be there")
    ranks = {min(toy.processes(f"RANK={rank}")) for rank in range(expected)}
    (guard,) = set(toy.processes()) - {launcher.pid, *of_ranks(toy, expected)}
    try:
        for lock in {lock for device in everything for lock in device.locks}:
            assert holders(locks, lock, toy) >= {launcher.pid, guard, *ranks}
        os.kill(guard, signal.SIGSTOP)
        launcher.kill()
        toy.finish(launcher)
        wait_for(lambda: len(toy.processes("RANK=0")) == 1, "the ranks to have followed it")
        with leased(str(locks), expected, everything, 1) as early:
            assert early.refused is not None, "a grandchild may still work on the device"
    finally:
        launcher.kill()
        os.kill(guard, signal.SIGCONT)
    with leased(str(locks), expected, everything, 600) as late:
        assert late.refused is None
        assert not of_ranks(toy, expected), "it was free before they were gone"


def of_ranks(toy: Bench, count: int) -> set[int]:
    return {process for rank in range(count) for process in toy.processes(f"RANK={rank}")}


def test_ended_while_it_waits_it_leaves_nothing(toy: Bench, tmp_path: Path) -> None:
    everything = devices.available("cpu", 1, ALL, {})
    with leased(str(tmp_path / "locks"), len(ALL), everything, 1):
        launcher = toy.start("", lease=tmp_path / "locks")
        wait_for(lambda: is_taken(str(tmp_path / "locks"), "turn"), "it to wait")
        launcher.terminate()
        done = toy.finish(launcher)
    assert (done.status, done.record) == (143, None), done.stderr
    assert "Traceback" not in done.stderr


NVIDIA_SMI = """#!/bin/sh
echo 'Example A, 81920, 550.1, GPU-aa, 00000000:0A:00.0, Disabled, 9.0'
echo 'Example B, 40960, 550.1, GPU-bb, 00000000:0B:00.0, Disabled, 9.0'
echo 'Example A, 81920, 550.1, GPU-cc, 00000000:0C:00.0, Disabled, 9.0'
"""


@pytest.fixture
def three_gpus(tmp_path: Path) -> dict[str, str]:
    """Return variables with which ``nvidia-smi`` reports three GPUs."""
    script = tmp_path / "bin" / "nvidia-smi"
    script.parent.mkdir()
    script.write_text(NVIDIA_SMI)
    script.chmod(0o755)
    return {"PATH": f"{script.parent}:{os.environ['PATH']}"}


def test_ranks_see_the_leased_gpus_alone(
    toy: Bench, tmp_path: Path, three_gpus: dict[str, str]
) -> None:
    locks = tmp_path / "locks"
    first = [Device("0", [], ["gpu-GPU-aa"])]
    with leased(str(locks), 1, first, 1):
        record = toy.run("", accelerator="cuda", lease=locks, variables=three_gpus).record
    assert record["status"] == "ok", record["reason"]
    assert record["lease"]["devices"] == ["1"]
    assert record["ranks"][0]["settings"]["cuda_visible_devices"] == "1"
    assert record["ranks"][0]["settings"]["threads"] == max(1, len(ALL) // 3)
    gpus = record["environment"]["hardware"]["gpus"]
    assert [gpu["name"] for gpu in gpus] == ["Example B"], "its own kind, not its neighbour's"


def test_leased_gpus_keep_the_names_they_were_given(
    toy: Bench, tmp_path: Path, three_gpus: dict[str, str]
) -> None:
    variables = {**three_gpus, "CUDA_VISIBLE_DEVICES": "2,GPU-bb"}
    locks = tmp_path / "locks"
    record = toy.run(
        "", accelerator="cuda", devices_per_node=2, lease=locks, variables=variables
    ).record
    assert [rank["settings"]["cuda_visible_devices"] for rank in record["ranks"]] == [
        "2,GPU-bb"
    ] * 2


def test_more_gpus_than_there_are(toy: Bench, tmp_path: Path, three_gpus: dict[str, str]) -> None:
    record = toy.run(
        "", accelerator="cuda", devices_per_node=4, lease=tmp_path / "locks", variables=three_gpus
    ).record
    assert (record["status"], record["reason"]) == (
        "unsupported", "4 device(s) are needed; there are 3"
    )  # fmt: skip


def test_gpus_that_is_unknown_apart_are_not_leased(
    toy: Bench, tmp_path: Path, three_gpus: dict[str, str]
) -> None:
    variables = {**three_gpus, "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    record = toy.run("", accelerator="cuda", lease=tmp_path / "locks", variables=variables).record
    assert record["status"] == "failed"
    assert "CUDA_DEVICE_ORDER is not PCI_BUS_ID" in record["reason"]


def test_a_lease_is_of_one_node(toy: Bench, tmp_path: Path) -> None:
    done = toy.run("", nodes=2, start_nodes="true", lease=tmp_path / "locks")
    assert (done.status, done.record) == (2, None)
    assert "--lease is for runs on one node" in done.stderr


def test_without_a_lease_there_is_none(toy: Bench) -> None:
    record = toy.run("").record
    assert "lease" not in record
    assert record["settings"]["side_by_side"] is False
