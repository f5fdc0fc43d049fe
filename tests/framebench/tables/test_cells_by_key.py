"""Figures are in the row of their case and under their heading, in every table and file.
They are compared with figures computed here from the runs alone, whichever case has none."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench.report import html_tables, page_data
from framebench.report.record_links import RowLinks
from framebench.tables import frames, registry
from framebench.tables.table import Table

from ..known_cells import (
    ENDS,
    FRAMEWORKS,
    PLACES,
    Known,
    KnownTables,
    Of,
    close,
    known_tables,
    markdown_rows,
    number,
    ratio,
)


@pytest.fixture(scope="module", params=list(product(ENDS, PLACES)), ids=lambda pair: " ".join(pair))
def made(request: pytest.FixtureRequest) -> KnownTables:
    return known_tables(*request.param)


def setting_of(axes: Of) -> Of:
    """Return a case's setting in comparisons of frameworks; JAX is never trained without its
    compiler."""
    usual = not axes.compiled or (axes.framework, axes.mode) == ("jax", "train")
    return axes.but(framework="", compiled=not usual)


def wanted(name: str, known: Known) -> dict[Of, dict[str, float | None]]:
    """Return the expected figures of a table by case."""
    actual: dict[Of, dict[str, float | None]] = {}
    for axes, value in known.items():
        if name in ("summary", "efficiency"):
            actual[axes] = {"throughput_median": value}
        elif name == "overview":
            alike = (other for other in known if setting_of(other) == setting_of(axes))
            best = max(known[other] or 0.0 for other in alike)
            actual[axes] = {"median": value, "part_of_best": value and value / best}
        elif name == "weak_scaling":
            base = axes.but(devices=1)
            actual[axes] = {"throughput_median": value, "speedup": ratio(known, axes, base)}
        elif name == "precision_speedup" and axes.precision == "amp":
            base = axes.but(precision="fp32")
            actual[axes] = {"throughput": value, "throughput_baseline": known.get(base)}
            actual[axes]["speedup"] = ratio(known, axes, base)
        elif name == "compiler_speedup" and axes.compiled:
            base = axes.but(compiled=False)
            actual[axes] = {"throughput": value, "throughput_baseline": known.get(base)}
    return actual


EXACT = ("summary", "efficiency", "overview", "weak_scaling", "precision_speedup",
         "compiler_speedup")  # fmt: skip


def of_row(row: Mapping[str, Any]) -> Of:
    return Of(
        row["framework"], row["mode"], row["precision"], row["compiler"] != "none",
        int(row["devices_per_node"]),
    )  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_the_csv_has_each_figure_in_the_row_of_its_case(made: Any, name: str) -> None:
    known, _, tables = made
    (text,) = (frames.csv_text(rows) for table, rows in tables.items() if table.name == name)
    steps = (row for row in csv.DictReader(text.splitlines()) if row["mode"] != "converge")
    rows = {of_row(row): row for row in steps}
    expected = wanted(name, known)
    assert rows.keys() == expected.keys()
    for axes, figures in expected.items():
        for column, value in figures.items():
            cell = rows[axes][column]
            assert cell == "" if value is None else float(cell) == pytest.approx(value), (
                axes,
                column,
            )


def page_rows(table: Table, rows: Any) -> Iterator[dict[str, str]]:
    """Yield each row of a table of the page by heading, as its script reads it."""
    shown = html_tables.of_frame(table, rows)
    data = json.loads(page_data.page_data([shown], RowLinks.none(), [], {}))
    (one,) = data["tables"]

    def values(at: int) -> list[str]:
        some = data["lists"][at]
        if isinstance(some, list):
            return some
        if "same" in some:
            return [some["same"]] * one["rows"]
        return [some["of"][index] for index in some["at"]]

    columns = {part["title"]: values(part["cells"]) for part in (*one["shown"], *one["unfolded"])}
    for at in range(one["rows"]):
        yield {title: texts[at].partition("\t")[0] for title, texts in columns.items()}


@pytest.mark.parametrize("name", [name for name in EXACT if name != "overview"])
def test_files_and_page_have_each_figure_in_the_row_of_its_case(made: Any, name: str) -> None:
    known, _, tables = made
    ((table, rows),) = ((table, rows) for table, rows in tables.items() if table.name == name)
    text = frames.files({table: rows}, Path("t"))[Path("t", f"{name}.md")]
    lines = [
        {**row, "mode": title.partition(", ")[2].partition(" ")[0]}
        for title, row in markdown_rows(text)
        if "compiler" in row
    ]
    expected = wanted(name, known)
    for entry in (lines, list(page_rows(table, rows))):
        assert len(entry) == len(expected)
        for row in entry:
            compiler = row.get("compiler", "")
            precision = row.get("precision", "amp").partition(" ")[0]
            compiled = compiler.partition(" ")[0] not in ("none", "")
            devices = int(row["devices"].rpartition("n")[2].removesuffix("g"))
            axes = Of(row["framework"], row["mode"], precision, compiled, devices)
            for column, value in expected[axes].items():
                assert close(row[table.by_name[column].header], value), (axes, column, row)


def test_the_overview_has_each_figure_under_its_setting(made: Any) -> None:
    known, _, tables = made
    ((table, rows),) = ((t, rows) for t, rows in tables.items() if t.name == "overview")
    files = frames.files({table: rows}, Path("t"))
    digits = {}
    for title, row in markdown_rows(files[Path("t", "overview.md")]):
        for setting, text in row.items():
            if (setting != "framework" and "train (images" in title) or "inference" in title:
                digits[row["framework"], "inference" in title, setting] = text
    page = {}
    for row in page_rows(table, rows):
        for framework in FRAMEWORKS:
            if "images/s" in row["measured"]:
                page[framework, "inference" in row["measured"], row["setting"]] = row[framework]
    for of in (Of(*axes) for axes in product(
        FRAMEWORKS, ("train", "inference"), ("fp32", "amp"), (False, True), (1, 2)
    )):  # fmt: skip
        if (of.framework, of.mode) == ("jax", "train"):  # both of its cases are at one setting
            continue
        setting = f"{of.precision} 1n{of.devices}g{' compiled' * of.compiled}"
        value = known.get(of)
        for entry in (digits, page):
            text = entry[of.framework, of.mode == "inference", setting]
            assert close(text, value), (of, text)


def test_no_row_of_any_table_has_a_figure_of_another_framework(made: Any) -> None:
    """Fail if a row has a throughput in the range of another framework."""
    _, _, tables = made
    for table, frame in tables.items():
        if "framework" not in table.names or table.name == "fastest":
            continue
        for row in frame.to_dict("records"):
            if row["framework"] not in FRAMEWORKS:
                continue
            names = [name for name in table.names if "throughput" in name or name == "median"]
            for value in (number(str(row[name])) for name in names):
                if value is not None and value >= 1000:
                    assert value // 1000 == FRAMEWORKS.index(row["framework"]) + 1, (
                        table.name,
                        row,
                    )


def test_a_row_with_another_column_than_its_table_is_refused() -> None:
    table = Table("any", "Any", "", registry.known()["failures"].columns)
    row = dict.fromkeys(table.names, "")
    wrong = [{**row, "why": ""}]
    for rows in (wrong, pd.DataFrame(wrong)):
        with pytest.raises(ValueError, match=r"^table any: its columns .* differ: why$"):
            frames.frame(table, rows)
    with pytest.raises(ValueError, match="reason"):
        frames.frame(table, [{name: "" for name in table.names if name != "reason"}])
