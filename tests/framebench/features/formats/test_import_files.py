"""Import of folders and of compressed files."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.records.record_sets import RecordsError

from . import samples
from .importing import imported


def test_what_is_wrong_in_a_folder_is_left_out_by_name_and_the_rest_is_taken(
    tmp_path: Path,
) -> None:
    text = samples.mllog()
    slower = text.replace('"time_ms": 1000', '"time_ms": 900')
    files = {"a.log": text, "b.log": slower, "copy.log": text, "c.log": "no\n", "d.csv": ""}
    runs, said = imported("mllog", files, tmp_path)
    assert sorted(run.repeat for run in runs) == [1, 2], "files of a folder are repeats"
    left = [line for line in said if line.startswith("left out")]
    assert len(left) == 2
    assert "left out: copy.log (of a.log): are copies" in left
    assert any("c.log" in line and "is of another format" in line for line in left)


def test_a_folder_of_which_nothing_can_be_read_is_refused_with_every_reason(
    tmp_path: Path,
) -> None:
    with pytest.raises(RecordsError) as error:
        imported("mllog", {"a.log": "[]", "b.log": "{"}, tmp_path)
    assert "a.log" in str(error.value)
    assert "b.log" in str(error.value)
    assert not (tmp_path / "results").exists()
