"""Files that a call gives to its jobs on existing records."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest
from framebench.commands import exit_status
from framebench.driver.tables import Tables


def test_a_killed_call_leaves_no_file_with_exit_statuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tables = Tables(Mock(results=str(tmp_path / "results")), Mock(measures=False), "")
    monkeypatch.setenv(exit_status.STATUS_FILE, tables.status(Mock()))
    assert tables.ended() == 0
    assert exit_status.leave(3) == 0
    assert tables.ended() == 3
    assert not [*tmp_path.iterdir()], "a file that only a clean end removes"
