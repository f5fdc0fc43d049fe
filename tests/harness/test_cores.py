"""Which cores a rank is given, from what the kernel tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import cores


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    """Four GPUs, two on each of two sockets with eight cores."""
    for number, near in enumerate(["0-7", "0-7", "8-15", "8-15"]):
        folder = tmp_path / f"0000:0{number}:00.0"
        folder.mkdir()
        (folder / "local_cpulist").write_text(near + "\n")
    return tmp_path


ADDRESSES = [f"00000000:0{number}:00.0" for number in range(4)]


def alone(core: int) -> list[int]:
    """A core without a second thread."""
    return [core]


def test_both_threads_of_a_core_go_to_the_same_gpu(gpus: Path) -> None:
    def siblings(core: int) -> list[int]:
        return [core % 4, core % 4 + 4]

    found = cores.near_gpus(ADDRESSES[:2], range(8), str(gpus), siblings)
    assert found == [[0, 1, 4, 5], [2, 3, 6, 7]]


def test_a_gpu_gets_cores_of_its_own_socket_that_no_other_has(gpus: Path) -> None:
    found = cores.near_gpus(ADDRESSES, range(16), str(gpus), alone)
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]


def test_a_gpu_alone_gets_all_cores_of_its_socket(gpus: Path) -> None:
    assert cores.near_gpus(ADDRESSES[2:3], range(16), str(gpus), alone) == [list(range(8, 16))]


def test_only_cores_that_may_be_used_are_given(gpus: Path) -> None:
    found = cores.near_gpus(ADDRESSES[1:3], [1, 2, 9, 30], str(gpus), alone)
    assert found == [[1, 2], [9]]


@pytest.mark.parametrize("usable", [[0], []])
def test_no_gpu_is_pinned_where_one_would_be_left_without_a_core(
    gpus: Path, usable: list[int]
) -> None:
    assert cores.near_gpus(ADDRESSES[:2], usable, str(gpus), alone) == [[], []]


def test_nothing_is_pinned_where_the_kernel_does_not_tell(tmp_path: Path) -> None:
    assert cores.near_gpus(ADDRESSES, range(16), str(tmp_path)) == [[]] * 4


def test_numa_nodes_of_cores(tmp_path: Path) -> None:
    for number, listed in enumerate(["0-3,8-11", "4-7,12-15"]):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "cpulist").write_text(listed)
    (tmp_path / "online").write_text("0-1")
    assert cores.numa_nodes([9, 10], str(tmp_path)) == [0]
    assert cores.numa_nodes([3, 4], str(tmp_path)) == [0, 1]
    assert cores.numa_nodes([3], str(tmp_path / "absent")) == []
