"""Declared tables and their columns, a new table module, and numbers as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench import cli, comparison
from framebench.config.validation import ConfigError
from framebench.tables import frames
from framebench.tables.formatting import rounded

from ..made_up_records import write_records
from ..page_rows import page_rows


def test_a_table_is_one_module(
    weather: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(frames.known_tables())[-1] == "weather", "other groups come behind"
    runs = write_records(tmp_path / "runs", 1, frameworks=("pytorch",))
    for name in ("truncated.json", "foreign.json"):
        (runs / name).unlink()
    arguments = ["--results", str(tmp_path)]
    assert cli.main(["report", "--records", str(runs), *arguments]) == 0
    table = tmp_path / "tables" / "weather.csv"
    header, first, *_ = table.read_text().splitlines()
    assert (header.split(",")[-2:], first.split(",")[-2:]) == (["warmth", "flags"], ["293", ""])
    assert "| 293 |" in (tmp_path / "tables" / "weather.md").read_text()
    page = (tmp_path / "report.html").read_text()
    part = page.split('id="weather-of-every-case">')[1].split("</details>")[0]
    assert "<svg" in part
    row, *_ = page_rows(page)["weather"]
    assert row.cells["warmth K"] == "293"
    assert row.records[0].startswith("runs/pytorch"), "the way to the records"
    capsys.readouterr()
    assert cli.main(["columns"]) == 0
    assert "| warmth | whole number | K | how warm it was |" in capsys.readouterr().out


def test_an_unknown_table_is_refused_by_name(tmp_path: Path) -> None:
    said = r"'sumary' \(did you mean summary\?\); allowed: .*overview"
    with pytest.raises(ConfigError, match=said):
        cli.write_tables(["summary", "sumary"], tmp_path / "runs", tmp_path)


def test_what_a_declaration_names_is_there() -> None:
    for table in (*frames.known_tables().values(), comparison.TABLE):
        assert table.answering or table.crosstab, f"{table.name}: no key answers in tables.yaml"
        columns = table.shown or table.columns
        names = {column.name for column in columns}
        assert len(names) == len(columns), table.name
        needed = {column.of for column in columns} | {table.order.removeprefix("-")}
        assert needed | {*table.answers} <= {"", *names}, table.name


@pytest.mark.parametrize(
    ("value", "spec", "shown"), [(54.0, "#.4g", "54.00"), (123456.0, ".3g", "123456"),
                                 (1.5e9, ".3g", "1.5e+09"), (2.0, ".1f", "2.0")],
)  # fmt: skip
def test_there_is_no_exponent_below_ten_millions(value: float, spec: str, shown: str) -> None:
    assert rounded(value, spec) == shown
