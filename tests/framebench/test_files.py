"""Files: sizes, locks, and a command's outputs, which are written all or none."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from core import bounded
from framebench import cli
from framebench.files import whole_files

from .saved_records import ROW, save_csv


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 * 2**30)  # takes no room on the disk


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    large(tmp_path / "x")
    for read in (bounded.read_bytes, bounded.read_text):
        with pytest.raises(OSError, match="has more than") as refused:
            read(tmp_path / "x")
        assert refused.value.filename == str(tmp_path / "x")


def test_text_is_the_same_with_any_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\rc: \xc3\xa9\n")
    assert bounded.read_text(path) == "a: 1\nb: 2\nc: é\n"
    path.write_bytes(b"a\xff")
    with pytest.raises(ValueError, match=r"not UTF-8 text \(byte 1\)"):
        bounded.read_text(path)


def test_the_end_of_a_file_of_any_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    large(path)
    with path.open("a") as file:
        file.write("last line\n")
    assert bounded.read_end(path, 10) == "last line\n"
    path.write_bytes(b"short\xff")
    assert bounded.read_end(path, 10) == "short\N{REPLACEMENT CHARACTER}"


def test_a_repeated_key_of_a_json_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text('{"layers": [{"width": 64, "depth": 2, "width": 65}]}')
    with pytest.raises(ValueError, match="gives the key 'width' twice; allowed: each once"):
        bounded.read_json(file)


#: File size limit in bytes: more than a table of one case, less than a page.
LIMIT = 40_000


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_disk_that_fills_up_leaves_the_former_tables_and_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, records = tmp_path / "results", tmp_path / "runs.csv"

    def made_of(throughput: float) -> int:
        rows = [{**ROW, "repeat": str(n), "throughput": str(throughput + n)} for n in (1, 2, 3)]
        save_csv(records, rows)
        return cli.main(["report", "--records", str(records), "--results", str(results)])

    assert made_of(3000) == 0
    before = contents(results)
    assert any(len(content) > LIMIT for content in before.values()), "nothing would fail"
    with full_disk(LIMIT):
        assert made_of(4000) == 1
    assert "cannot write" in capsys.readouterr().err
    tables = {path: text for path, text in before.items() if path.name[0] != "."}
    after = contents(results)
    assert {path: after[path] for path in tables} == tables, "new tables beside the former page"
    assert made_of(4000) == 0
    assert contents(results) != before


BUSY, ADVICE = "somebody is there", "go elsewhere"


def test_a_lock_has_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "results" / ".lock"
    first = whole_files.lock(path, ADVICE, BUSY)
    with pytest.raises(whole_files.LockError) as error:
        whole_files.lock(path, ADVICE, BUSY)
    assert str(error.value) == f"{path.parent}: {BUSY}. Wait until it ends, or {ADVICE}"
    first.close()
    whole_files.lock(path, ADVICE, BUSY).close()


def test_a_file_system_without_locks_is_named_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(whole_files.LockError, match="gives no lock") as error:
        whole_files.lock(tmp_path / ".lock", ADVICE, BUSY)
    assert str(tmp_path) in str(error.value)
    assert ADVICE in str(error.value)
