"""Import of folders and of compressed files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from core import bounded
from framebench.features.formats import source
from framebench.records.record_sets import RecordsError

from . import samples
from .importing import brought, imported, values_by_case


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


def test_files_of_two_configurations_are_two_cases(tmp_path: Path) -> None:
    other = samples.mllog().replace("448", "896")
    runs, _ = imported("mllog", {"a.log": samples.mllog(), "b.log": other}, tmp_path)
    assert len(values_by_case(runs, "time_to_train")) == 2


@pytest.mark.parametrize(("name", "suffix"), [("mllog", ".log"), ("superbench", ".jsonl")])
def test_a_compressed_file_is_read_as_the_file(name: str, suffix: str, tmp_path: Path) -> None:
    text = samples.ALL[name]()
    runs, _ = imported(name, {f"given{suffix}.gz": gzip.compress(text.encode())}, tmp_path)
    plain = brought(name, text, tmp_path, at="plain").runs
    assert [run.metrics for run in runs] == [run.metrics for run in plain]


def test_a_file_that_unpacks_beyond_bounds_or_is_damaged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "given.log.gz"
    file.write_bytes(gzip.compress(b" " * 10_000))
    monkeypatch.setattr(bounded, "LARGEST_FILE", 5_000)
    with pytest.raises(source.FormatError, match="unpacks to more than 5000 bytes"):
        [*source.ImportedFile(file).lines()]
    file.write_bytes(gzip.compress(samples.mllog().encode())[:-9])
    with pytest.raises(source.FormatError, match="is no complete gzip file"):
        [*source.ImportedFile(file).lines()]


@pytest.mark.parametrize("held", ["tables/fastest.csv", "report.html", "runs/r1.json"])
def test_results_that_hold_anything_are_refused(held: str, tmp_path: Path) -> None:
    there = tmp_path / "results" / held
    there.parent.mkdir(parents=True)
    there.write_text("here before")
    with pytest.raises(RecordsError, match=r"holds \S+ already; allowed: a folder"):
        brought("mllog", samples.mllog(), tmp_path)
    assert not (tmp_path / "results" / "runs" / "runs.csv").exists()
    assert there.read_text() == "here before"
