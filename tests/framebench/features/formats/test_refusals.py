"""Refusal of files that are incomplete or not of the stated format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from framebench.features.formats import file_formats
from framebench.features.formats.imported import ImportedFile, complete
from framebench.records import tidy_csv
from framebench.records.run import RecordsError

from . import samples
from .samples import READ, brought

#: Formats in which a truncated file may be valid.
OPEN_ENDED = ("csv", "mllog")


@pytest.mark.parametrize("name", READ)
def test_a_file_of_another_tool_is_named(name: str, tmp_path: Path) -> None:
    for other, sample in samples.ALL.items():
        if other != name:
            with pytest.raises(RecordsError, match="given"):
                brought(name, sample(), tmp_path)
    assert not (tmp_path / "results").exists(), "nothing is written"


@pytest.mark.parametrize("name", sorted({*READ} - {*OPEN_ENDED}))
def test_a_file_that_was_cut_off_is_refused_by_line(name: str, tmp_path: Path) -> None:
    text = samples.ALL[name]()
    with pytest.raises(RecordsError, match=r"given.*line \d+"):
        brought(name, text[:-4], tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("superbench", "83.9", '"83.9"', "line 1: key '.*fp16_train_step_time': found '83.9'"),
        ("superbench", '"sb-02"', '"sb-01"', "line 2: node 'sb-01' is also in line 1"),
        ("dllogger", '"final_loss": 8.7', '"final_loss": NaN', "line 6: final_loss: found nan"),
        ("mllog", '"run_start"', '"block_start"', "line 6: run_stop without a run_start"),
        ("csv", "392.25", "0.0", "line 3, column throughput: found '0.0'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    name: str, old: str, new: str, expected: str, tmp_path: Path
) -> None:
    text = samples.ALL[name]()
    assert old in text
    with pytest.raises(RecordsError, match=expected):
        brought(name, text.replace(old, new), tmp_path)


def altered(value: Any) -> Iterator[Any]:
    """Yield the value with each part in turn replaced by another type."""
    yield from (None, [], {}, "x", -1, 10**400, True, [{}], {"x": "\x1b"})
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: entry for name, entry in value.items() if name != key}
            yield from ({**value, key: entry} for entry in altered(part))
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from ([*value[:index], entry, *value[index + 1 :]] for entry in altered(part))


def lines_altered(text: str) -> Iterator[str]:
    """Yield a file with one value of another type, or one line missing or garbled."""
    documents = [text] if text.startswith("{\n") else text.splitlines(keepends=True)
    for index, document in enumerate(documents):
        start, brace, rest = document.partition("{")
        actual = [document[: len(document) // 2] + "\n", "", "\n", "| : | (ms): nan |\n"]
        if brace:
            actual += [
                f"{start}{json.dumps(entry)}\n" for entry in altered(json.loads(brace + rest))
            ]
        for name in actual:
            yield "".join([*documents[:index], name, *documents[index + 1 :]])


@pytest.mark.parametrize("name", READ)
def test_whatever_stands_there_is_read_or_refused(name: str, tmp_path: Path) -> None:
    form, file = file_formats.reader(name), tmp_path / "given.csv"
    assert form.read
    refused: list[str] = []
    for text in lines_altered(samples.ALL[name]()):
        file.write_text(text)
        try:
            taken = complete([*form.read(ImportedFile(file))])
            tidy_csv.text_of(row for run in taken for row in tidy_csv.rows_of(run))
        except RecordsError as error:
            refused.append(str(error))
    assert refused or name == "mllog", "nothing of it is checked"
    of_lines = [said for said in refused if "is of another format" not in said]
    assert [said for said in of_lines if not re.search(r"line \d+", said)] == []


def test_results_that_hold_something_else_are_left_alone(tmp_path: Path) -> None:
    brought("csv", samples.csv(), tmp_path)
    before = (tmp_path / "results" / "runs" / "runs.csv").read_text()
    brought("csv", samples.csv(), tmp_path)  # importing the same file again changes nothing
    with pytest.raises(RecordsError, match="holds runs already"):
        brought("mllog", samples.mllog(), tmp_path)
    assert (tmp_path / "results" / "runs" / "runs.csv").read_text() == before
