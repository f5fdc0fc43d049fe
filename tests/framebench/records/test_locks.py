"""A lock that cannot be had gives one message with advice."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest
from framebench.files import whole_files

BUSY, ADVICE = "somebody is there", "go elsewhere"


def test_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "results" / ".lock"
    first = whole_files.lock(path, ADVICE, BUSY)
    with pytest.raises(whole_files.LockError) as error:
        whole_files.lock(path, ADVICE, BUSY)
    assert str(error.value) == f"{path.parent}: {BUSY}. Wait until it ends, or {ADVICE}"
    first.close()
    whole_files.lock(path, ADVICE, BUSY).close()


@pytest.mark.parametrize("busy", [BUSY, None])
def test_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: str | None
) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(whole_files.LockError, match="gives no lock") as error:
        whole_files.lock(tmp_path / ".lock", ADVICE, busy)
    assert str(tmp_path) in str(error.value)
    assert ADVICE in str(error.value)


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(whole_files.LockError, match="cannot be written"):
        whole_files.lock(tmp_path / "file" / ".lock", ADVICE, BUSY)
