"""Allocators of ranks: requested and verified in each rank, else there is no measurement."""

from __future__ import annotations

import ctypes.util
import os
import re
from pathlib import Path

import pytest
from harness.machine import allocator

from ...bench import Bench
from ..validity import assert_valid


@pytest.fixture
def library() -> Path:
    """Return a library of glibc that nobody loads."""
    actual = re.search(r"(/\S+)/libc\.so\.6$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    assert actual
    return Path(actual[1], "libBrokenLocale.so.1")


def test_the_ranks_have_it_and_say_which(toy: Bench, library: Path, tmp_path: Path) -> None:
    link = tmp_path / "allocator.so"
    link.symlink_to(library)
    record = toy.run("", preload=link, devices_per_node=2).record
    assert_valid(record)
    assert (record["status"], record["settings"]["preload"]) == ("ok", str(link)), record["reason"]
    for rank in record["ranks"]:
        assert rank["preloaded"] == os.path.realpath(library), "the kernel knows no links"


def test_a_library_that_was_not_loaded_is_no_measurement(toy: Bench, tmp_path: Path) -> None:
    """Fail if a run counts whose library was not loaded; the linker only warns in the log."""
    text = tmp_path / "allocator.so"
    text.write_text("no library")
    record = toy.run("", preload=text).record
    assert record["status"] == "failed"
    assert record["reason"].endswith(f"preload: {text} was not loaded into the process")
    assert record["metrics"]["throughput"]["value"] is None


def test_one_that_is_missing_is_refused_before_a_rank_starts(toy: Bench, tmp_path: Path) -> None:
    gone = tmp_path / "gone.so"
    record = toy.run("", preload=gone).record
    assert (record["status"], record["ranks"]) == ("failed", [])
    assert record["reason"] == f"preload: there is no library {gone}"


@pytest.mark.parametrize(
    ("name", "package"), [("jemalloc", "libjemalloc2"), ("tcmalloc", "libtcmalloc-minimal4")]
)
def test_a_name_that_is_not_installed_names_the_package(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    assert f"in the package {package}" in (allocator.missing(name) or "")
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"lib{name}.so.4")
    assert allocator.missing(name) is None
    assert allocator.missing(None) is None


def test_a_rank_knows_what_it_holds_in_huge_pages(tmp_path: Path) -> None:
    rollup = tmp_path / "rollup"
    assert allocator.huge_page_bytes(str(rollup)) is None
    rollup.write_text("Rss:  9 kB\nAnonHugePages:  4096 kB\n")
    assert allocator.huge_page_bytes(str(rollup)) == 2**22
