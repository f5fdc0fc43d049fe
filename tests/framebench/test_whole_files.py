"""Files of a command are all written, or none is, also on a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.files.whole_files import write_together

from .full_disk import check_full_disk, contents, full_disk


def test_files_that_belong_together_are_replaced_together(tmp_path: Path) -> None:
    names = [tmp_path / "a" / "table", tmp_path / "b" / "page", tmp_path / "c"]
    write_together(dict.fromkeys(names, "former"))
    before = contents(tmp_path)
    with full_disk(1000), pytest.raises(OSError, match=r"large.*b/page"):
        write_together({names[0]: "new", names[1]: "x" * 2000, names[2]: b"new"})
    assert contents(tmp_path) == before, "a part was written, or left beside"
    names[2].unlink()
    names[2].mkdir()
    with pytest.raises(IsADirectoryError):
        write_together({names[0]: "new", names[2]: "new"})
    assert names[0].read_text() == "former"
    write_together({names[0]: "new", names[1]: b"new"})
    assert [name.read_text() for name in names[:2]] == ["new", "new"]


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_disk_that_fills_up_leaves_the_former_tables_and_page(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def words(runs: Path, earlier: Path) -> list[str | Path]:
        if command == "report":
            return [command, "--records", runs]
        return [command, "--base", earlier.parents[1], "--candidate", runs]

    check_full_disk(tmp_path / "results", capsys, words)
