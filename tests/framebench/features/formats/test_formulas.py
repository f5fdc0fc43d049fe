"""Text that a spreadsheet, LaTeX or an XML parser would misinterpret."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from core.text import printable
from framebench.features.formats import file_formats, transfer
from framebench.features.formats.file_formats import Results
from framebench.files.text import from_cell, no_formula
from framebench.records import record_sets, sidecars
from framebench.tables import frames, grouping

from ...made_up_runs import run

FORMULAS = (
    "=1+1", " =1+1", "\u00a0=1", "\t=1", "\tx", "\rx", "+cmd|' /C calc'!A0", "+1+1", "-2+3",
    "- 5", "-1.5.2", "@SUM(A1)", "'=1", "''=1", "' =1",
)  # fmt: skip
OTHERS = ("", "-", "-1.5", "+3", "-1e-05", " -1.5", "-.5", "a=1", "5=", "'quoted'", "'-1.5", "#1")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text_in_a_cell_and_itself_when_it_is_read(text: str) -> None:
    cell = no_formula(text)
    assert cell == f"'{text}"
    assert from_cell(cell) == text


@pytest.mark.parametrize("text", OTHERS)
def test_numbers_and_other_text_stay_as_they_are(text: str) -> None:
    assert no_formula(text) == text
    assert from_cell(text) == text


def test_every_csv_file_holds_text_and_gives_it_back(tmp_path: Path) -> None:
    kept = [text for text in FORMULAS if text.isprintable() and text == text.strip()]
    runs = [run(1.5, source_variant=text) for text in kept]
    cases = grouping.group(runs, None)
    transfer.export_cases(cases, "csv", tmp_path / "export.csv", tmp_path)
    read = pd.read_csv(tmp_path / "export.csv", dtype=str, keep_default_na=False)
    assert sorted(read["variant"]) == sorted(f"'{text}" for text in kept)
    again = record_sets.load(tmp_path / "export.csv").runs
    assert {one.conditions.source_variant for one in again} == {*kept}
    assert frames.csv_text(pd.DataFrame({"a": [" =1"], "b": [-1.5]})) == "a,b\n' =1,-1.5\n"
    sidecars.append(tmp_path, [sidecars.CallEntry("now", "", text) for text in kept])
    raw = pd.read_csv(tmp_path / "calls.csv", dtype=str, keep_default_na=False)
    assert list(raw["command"]) == [f"'{text}" for text in kept]
    calls, problems = sidecars.load(tmp_path, sidecars.CallEntry)
    assert [call.command for call in calls] == kept
    assert not problems


def test_other_formats_escape_what_their_reader_would_obey() -> None:
    runs = [
        run(1.0, model='[1ex]*"\\&<!--', source_variant="$x$"),
        run(None, reason=printable("bad \ufffe")),
    ]
    cases = grouping.group(runs, None)
    results = Results(cases)
    write = file_formats.writer("junit").write
    assert write
    ElementTree.fromstring(write(results).content)
    write = file_formats.writer("latex").write
    assert write
    rows = str(write(results).content).splitlines()
    assert not any(row.startswith(("[", "*")) for row in rows), "an argument of the line before"
