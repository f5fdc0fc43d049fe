"""Files that are not regular, or too large, are refused instead of waited for."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from core import bounded
from framebench.files import json_files, locks


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 bytes
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 * 2**30)  # takes no room on the disk


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (fifo, "no regular file"),
        (listening, "no regular file"),
        (Path.mkdir, "no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
        (large, "has more than"),
    ],
    ids=["fifo", "socket", "folder", "endless device", "too large"],
)
def test_what_is_no_regular_file_of_bounded_size_is_refused(
    tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "x"
    make(path)
    for read in (bounded.read_bytes, bounded.read_text):
        with pytest.raises(bounded.UnfitFile, match=said) as refused:
            read(path)
        assert refused.value.filename == str(path)


@pytest.mark.parametrize("make", [fifo, listening, Path.mkdir])
def test_nothing_is_appended_to_what_is_no_regular_file(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "x")
    with pytest.raises(bounded.UnfitFile):
        bounded.open_to_append(tmp_path / "x")
    with pytest.raises(locks.LockError, match="regular file"):
        locks.take(tmp_path / "x", "do something else")


def test_a_file_of_the_kernel_is_read_though_it_has_no_size() -> None:
    assert b"python" in bounded.read_bytes("/proc/self/cmdline")
    assert "Pid:" in bounded.read_text("/proc/self/status")


def test_text_is_the_same_with_any_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\rc: \xc3\xa9\n")
    assert bounded.read_text(path) == "a: 1\nb: 2\nc: é\n"
    path.write_bytes(b"a\xff")
    with pytest.raises(ValueError, match=r"no UTF-8 text \(byte 1\)"):
        bounded.read_text(path)


def test_the_end_of_a_file_of_any_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    large(path)
    with path.open("a") as file:
        file.write("last line\n")
    assert bounded.read_end(path, 10) == "last line\n"
    path.write_bytes(b"short\xff")
    assert bounded.read_end(path, 10) == "short\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("read", [json_files.read, bounded.read_json], ids=["driver", "harness"])
def test_a_repeated_key_of_a_json_file_is_refused(read: Callable, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text('{"layers": [{"width": 64, "depth": 2, "width": 65}]}')
    with pytest.raises(ValueError, match="gives the key 'width' twice; allowed: each once"):
        read(file)
