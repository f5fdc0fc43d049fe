"""The index returns what the records say, and trusts no other file."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core import axes
from framebench.records import index, record_files, record_sets

from ..imported import packages_behind
from ..saved_records import failed, record, save


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the list of contents parsed from now on; files count as settled at once."""
    seen: list[bytes] = []
    parse = record_files.parse

    def noting(content: bytes, kind: str = "") -> dict[str, Any]:
        seen.append(content)
        return parse(content, kind)

    monkeypatch.setattr(record_files, "parse", noting)
    monkeypatch.setattr(index, "SETTLED_NS", -(10**9))
    return seen


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Write two records of a case, a failed one, and an invalid file."""
    folder = tmp_path / "results"
    save(folder / "runs", "c/r1.json", record())
    save(folder / "runs", "c/r2.json", record(repeat=2, seconds=(0.4, 0.5)))
    save(folder / "runs", "d/r1.json", failed(case={"nodes": 2}))
    save(folder / "runs", "d/r2.json", "{")
    return folder


def test_what_it_says_is_what_the_records_say(results: Path, parsed: list[bytes]) -> None:
    first = record_sets.load_results(results)
    assert len(parsed) == 4
    assert record_sets.load_results(results) == first == record_sets.load(results / "runs")
    assert len(parsed) == 4 + 1 + 4, (
        "a record that is known is parsed again, or a broken one is not"
    )


def test_a_file_that_changed_is_read_again(results: Path, parsed: list[bytes]) -> None:
    record_sets.load_results(results)
    changed = results / "runs/c/r1.json"
    before = changed.stat()
    content = changed.read_bytes()
    changed.write_bytes(content.replace(b"0.5", b"0.6"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed.stat().st_size == before.st_size
    assert record_sets.load_results(results) == record_sets.load(results / "runs")


def test_a_record_that_is_gone_is_gone(results: Path, parsed: list[bytes]) -> None:
    record_sets.load_results(results)
    (results / "runs/c/r2.json").unlink()
    actual = record_sets.load_results(results)
    assert actual
    assert {run.origin for run in actual.runs} == {"c/r1.json", "d/r1.json"}


def test_a_copied_index_says_nothing_of_the_copies(results: Path, parsed: list[bytes]) -> None:
    record_sets.load_results(results)
    copy = shutil.copytree(results, results.with_name("copy"), copy_function=shutil.copy2)
    del parsed[:]
    actual = record_sets.load_results(copy)
    assert len(parsed) == 4
    assert actual
    assert all(copy in run.record.parents for run in actual.runs if run.record)


def test_results_that_were_moved_keep_it(results: Path, parsed: list[bytes]) -> None:
    record_sets.load_results(results)
    moved = results.rename(results.with_name("moved"))
    del parsed[:]
    assert record_sets.load_results(moved) == record_sets.load(moved / "runs")
    assert len(parsed) == 1 + 4


def test_that_of_other_code_is_none(
    results: Path, parsed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    record_sets.load_results(results)
    monkeypatch.setattr(index, "code_digest", lambda *_: "another")
    del parsed[:]
    record_sets.load_results(results)
    assert len(parsed) == 4


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    os.truncate(path, 3 * 2**30)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"x"),
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(path.read_bytes().replace(b'"ok"', b'"ko"')),
        lambda path: path.write_bytes(index.first_line(b"[" * 10**6) + b"\n" + b"[" * 10**6),
        lambda path: path.write_bytes(
            pickle.dumps((index.code_digest(index.CODE, index.SCHEMA), {}))
        ),
        fifo,
        endless,
        huge,
    ],
    ids=["empty", "text", "cut", "changed", "nested", "pickle", "fifo", "device", "3 GiB"],
)
def test_one_that_is_broken_is_none(
    results: Path, parsed: list[bytes], spoil: Callable[[Path], None]
) -> None:
    record_sets.load_results(results)
    spoil(results / record_sets.INDEX)
    del parsed[:]
    assert record_sets.load_results(results) == record_sets.load(results / "runs")
    assert len(parsed) == 4 + 4


def test_a_pickle_that_takes_for_ever_to_load_is_not_loaded(
    results: Path, parsed: list[bytes]
) -> None:
    """Fail if a pickle that takes forever to load is loaded.
    Its key, 45 nested pairs of equal halves, takes 2^45 steps to hash."""
    key: Any = ()
    for _ in range(45):
        key = (key, key)
    pickled = pickle.dumps(key, protocol=2)
    (results / record_sets.INDEX).write_bytes(b"\x80\x02}" + pickled[2:-1] + b"K\x01s.")
    assert record_sets.load_results(results) == record_sets.load(results / "runs")


def test_a_call_that_may_not_write_leaves_none(results: Path, parsed: list[bytes]) -> None:
    assert record_sets.load_results(results, writes=False)
    assert not (results / record_sets.INDEX).exists()


def test_what_was_written_just_now_is_not_in_it(results: Path) -> None:
    record_sets.load_results(results)
    entries = index.Index(results / record_sets.INDEX)
    file = results / "runs/c/r1.json"
    assert entries.get(file, "c/r1.json") is None


def test_other_code_of_the_shared_package_or_another_axis_is_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = tmp_path / "core"
    shutil.copytree(Path(axes.__file__).parent, core)
    before = index.code_digest(["tables"])
    monkeypatch.setattr(axes, "__file__", str(core / "axes.py"))
    assert index.code_digest(["tables"]) == before, "where the package lies does not count"
    monkeypatch.setitem(
        axes.REGISTERED, "batch_order", axes.Axis("batch_order", "", default="as is")
    )
    with_axis = index.code_digest(["tables"])
    (core / "case.py").write_text((core / "case.py").read_text() + "# changed\n")
    assert len({before, with_axis, index.code_digest(["tables"])}) == 3


def test_an_index_is_discarded_with_any_code_that_parses_runs() -> None:
    assert set(index.CODE) == packages_behind("records.record_sets")
