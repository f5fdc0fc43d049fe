"""The file of runs holds all that the records say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from framebench.commands import reporting
from framebench.config.validation import ConfigError
from framebench.records import record_sets, runs_file
from framebench.records.run import RecordsError

from ..saved_records import failed, record, save


def test_runs_are_read_back_as_they_were(tmp_path: Path) -> None:
    folder, file = tmp_path / "runs", tmp_path / runs_file.NAME
    save(folder, "c/r1.json", record())
    save(folder, "c/r2.json", record(repeat=2, seconds=(0.40625, 0.5)))
    save(folder, "d/r1.json", failed(case={"nodes": 2}))
    save(folder, os.fsdecode(b"d/\xff.json"), "{")
    records = record_sets.load(folder)
    assert (len(records.runs), len(records.problems)) == (3, 1)
    file.write_bytes(runs_file.content(records, "0123"))
    assert runs_file.read(file, folder) == records
    assert file.read_bytes().count(b"0.40625") == 1, "step times are stored more than once"
    assert runs_file.fingerprint(file) == "0123"


def test_an_unknown_table_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"'sumary' \(did you mean summary\?\); allowed: .*overview"
    ):
        reporting.write_tables(["summary", "sumary"], tmp_path / "runs", tmp_path)


def test_a_damaged_file_of_runs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / runs_file.NAME
    file.write_text("0123\n{}\n")
    with pytest.raises(RecordsError, match=r"runs\.json"):
        runs_file.read(file, tmp_path)
