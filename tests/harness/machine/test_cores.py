"""Cores of a rank, from the kernel's topology."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import cores
from harness.hardware import physical_cores

from ... import fake_gpus
from ...bench import Bench


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    """Write four GPUs, two on each of two sockets with eight cores."""
    for number, near in enumerate(["0-7", "0-7", "8-15", "8-15"]):
        folder = tmp_path / f"0000:0{number}:00.0"
        folder.mkdir()
        (folder / "local_cpulist").write_text(near + "\n")
    return tmp_path


ADDRESSES = [f"00000000:0{number}:00.0" for number in range(4)]


#: Siblings of a core in Linux's numberings: adjacent, or all first threads first.
TOPOLOGIES: dict[str, tuple[int, Callable[[int], list[int]]]] = {
    "4 cores, 2 threads": (8, lambda core: [core % 4, core % 4 + 4]),
    "4 cores, 2 threads in turn": (8, lambda core: [core // 2 * 2, core // 2 * 2 + 1]),
    "two sockets, 4 cores each, 2 threads": (16, lambda core: [core % 8, core % 8 + 8]),
    "two sockets, 4 cores each": (8, lambda core: [core]),
    "3 cores, 4 threads": (12, lambda core: [core % 3 + 3 * n for n in range(4)]),
    "2 large cores with 2 threads, 4 small": (
        8, lambda core: [core // 2 * 2, core // 2 * 2 + 1] if core < 4 else [core]
    ),
}  # fmt: skip


def alone(core: int) -> list[int]:
    """Return the siblings of a core with one thread."""
    return [core]


@pytest.mark.parametrize(
    ("addresses", "usable", "siblings", "expected"),
    [
        # both threads of each core, and only cores that no other GPU has
        (ADDRESSES[:2], range(8), lambda core: [core % 4, core % 4 + 4],
         [[0, 1, 4, 5], [2, 3, 6, 7]]),
        (ADDRESSES, range(16), alone, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11],
                                       [12, 13, 14, 15]]),
        (ADDRESSES[2:3], range(16), alone, [[8, 9, 10, 11, 12, 13, 14, 15]]),
        (ADDRESSES[1:3], [1, 2, 9, 30], alone, [[1, 2], [9]]),
        # otherwise one GPU would be left without a core
        (ADDRESSES[:2], [0], alone, [[], []]),
        (["00000000:99:00.0"], range(16), alone, [[]]),
    ],
)  # fmt: skip
def test_a_gpu_gets_usable_cores_of_its_own_socket(
    gpus: Path, addresses: list[str], usable: list[int], siblings: Any, expected: list[list[int]]
) -> None:
    assert cores.near_gpus(addresses, usable, str(gpus), siblings) == expected


#: Launcher on a machine with one thread per core, whose GPUs are described in the folder of its
#: first argument.
WITH_GPUS = """
import functools, runpy, sys
sys.path.insert(0, sys.argv[2].rpartition("/")[0])
from harness import cores
gpus = {"root": sys.argv[1], "siblings": lambda core: [core]}
cores.near_gpus = functools.partial(cores.near_gpus, **gpus)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("shared", "visible", "devices", "expected"),
    [
        (False, "1,0", 2, [[1], [0]]),
        (True, "0,1", 1, [[0]]),  # the same cores as next to the other GPU
    ],
)
def test_a_rank_runs_near_its_gpu(
    toy: Bench, tmp_path: Path, shared: bool, visible: str, devices: int, expected: list[list[int]]
) -> None:
    usable = cores.allowed()[:2]
    for number in range(2):
        folder = tmp_path / f"0000:{number + 16:02x}:00.0"
        folder.mkdir()
        near = usable if shared else usable[number : number + 1]
        (folder / "local_cpulist").write_text(",".join(map(str, near)))
    listed = fake_gpus.gpus(2, "Example", 40960, "580.95.05", "9.0")
    path = f"{fake_gpus.install(tmp_path / 'bin', listed)}:{os.environ['PATH']}"
    python, *arguments = toy.command(devices_per_node=devices, accelerator="cuda")
    variables = {**toy.environment(""), "PATH": path, "CUDA_VISIBLE_DEVICES": visible}
    subprocess.run([python, "-c", WITH_GPUS, tmp_path, *arguments], env=variables, check=True)
    ranks = [[usable.index(core) for core in rank["cores"]] for rank in toy.read_record()["ranks"]]
    assert ranks == expected


def test_numa_nodes_of_cores(tmp_path: Path) -> None:
    for number, listed in enumerate(["0-1,4", "2-3"]):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "cpulist").write_text(listed)
    (tmp_path / "online").write_text("0-1")
    assert cores.by_numa_node(str(tmp_path)) == {0: [0, 1, 4], 1: [2, 3]}
    assert cores.by_numa_node(str(tmp_path / "absent")) == {}


# ---- ranks on a CPU ------------------------------------------------------------------------------


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_device_shares_a_physical_core_where_there_are_enough(topology: str) -> None:
    logical, siblings = TOPOLOGIES[topology]
    whole = len({tuple(siblings(core)) for core in range(logical)})
    for count in range(1, logical + 1):
        for per_device in range(1, logical // count + 1):
            dealt = cores.deal(range(logical), count, per_device, siblings, ())
            assert [len(cores) for cores in dealt] == [per_device] * count
            arguments = [core for cores in dealt for core in cores]
            assert len(set(arguments)) == len(arguments), "a core was given twice"
            used = [{tuple(siblings(core)) for core in cores} for cores in dealt]
            if count * per_device <= whole:
                assert sum(map(len, used)) == count * per_device, "threads of one core count twice"
                entry = cores.deal(range(logical), 1, per_device, siblings, ())
                assert dealt[0] == entry[0], "one alone is not like one of many"
            threads = len(siblings(0))
            if topology.endswith("threads") and count * -(-per_device // threads) <= whole:
                assert len(set.union(*used)) == sum(map(len, used)), "two devices share a core"


#: Logical cores of each NUMA node, including second threads: numbered alternately, or node by node.
NODES: dict[str, list[list[int]]] = {
    "two nodes of 4 in turn": [[0, 2, 4, 6], [1, 3, 5, 7]],
    "two nodes of 4": [[0, 1, 2, 3], [4, 5, 6, 7]],
    "two nodes of 4, one with fewer that may be used": [[0, 1, 2], [4, 5, 6, 7]],
    "four nodes of 2": [[0, 1], [2, 3], [4, 5], [6, 7]],
}


@pytest.mark.parametrize("named", NODES)
def test_no_device_has_cores_of_two_numa_nodes_where_there_is_room_within(named: str) -> None:
    nodes = NODES[named]
    usable = sorted(core for cores in nodes for core in cores)
    for per_device in range(1, len(usable) + 1):
        room = sum(len(cores) // per_device for cores in nodes)
        for count in range(1, len(usable) // per_device + 1):
            dealt = cores.deal(usable, count, per_device, alone, nodes)
            arguments = [core for cores in dealt for core in cores]
            assert len(set(arguments)) == len(arguments) == count * per_device
            places = [sum(bool(set(node) & set(cores)) for node in nodes) for cores in dealt]
            if count <= room:
                assert places == [1] * count, (per_device, dealt)
                assert dealt[0] == cores.deal(usable, 1, per_device, alone, nodes)[0]


def test_cores_whose_numa_node_is_not_known_are_dealt_last() -> None:
    assert cores.deal(range(4), 2, 1, alone, [[2]]) == [[2], [0]]


def test_only_allowed_threads_are_dealt() -> None:
    _, siblings = TOPOLOGIES["4 cores, 2 threads"]
    assert physical_cores([0, 4, 5, 7], siblings) == [[0, 4], [5], [7]]
    assert cores.deal([0, 4, 5, 7], 3, 1, siblings, ()) == [[0], [5], [7]]
    assert cores.deal([0, 4, 5, 7], 2, 2, siblings, ()) == [[0, 4], [5, 7]]
    assert cores.deal([0, 1], 2, 1, lambda core: [0, 1], ()) == [[0], [1]], "one core for both"
