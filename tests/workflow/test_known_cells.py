"""Figures are in the row of their case and under their heading, in every table, file and page.
One report is made of records with known throughputs. In a model each, some frameworks have no
figure in mixed precision, for one of several reasons; every cell is computed here as well."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ..commands import framebench, read_rows
from ..framebench.made_up_records import CASE, COMPILERS, record_of
from ..framebench.page_rows import PageRow, page_rows
from ..framebench.table_rows import shown

FRAMEWORKS = ("jax", "mxnet", "pytorch", "tensorflow")
ENDS = ("unsupported", "failed", "missing")
PLACES = {"first": FRAMEWORKS[:1], "middle": FRAMEWORKS[1:3], "last": FRAMEWORKS[-1:]}
MODELS = {f"resnet_{end}_{place}": (end, PLACES[place]) for end, place in product(ENDS, PLACES)}
MODES = ("train", "inference")
#: Tables, and headings of their columns in files and on the page.
HEADINGS = {
    "summary": {"throughput_median": "median"},
    "efficiency": {"throughput_median": "median"},
    "weak_scaling": {"throughput_median": "median", "speedup": "speed-up"},
    "precision_speedup": {
        "throughput": "throughput", "throughput_baseline": "baseline", "speedup": "speed-up",
    },
    "compiler_speedup": {"throughput": "throughput", "throughput_baseline": "baseline"},
}  # fmt: skip


class Of(NamedTuple):
    """Axes that distinguish the cases."""

    model: str
    framework: str
    mode: str
    precision: str
    compiled: bool
    devices: int

    def but(self, **other: Any) -> Of:
        return self._replace(**other)


def known_throughputs() -> dict[Of, float | None]:
    """Return the throughput of each case, None without a figure.
    Each framework has its own range of a thousand."""
    known: dict[Of, float | None] = {}
    axes = product(FRAMEWORKS, MODES, ("fp32", "amp"), (False, True), (1, 2))
    for number, values in enumerate(axes):
        for model, (end, frameworks) in MODELS.items():
            of = Of(model, *values)
            if of.precision == "fp32" or of.framework not in frameworks:
                known[of] = 1000.0 * (FRAMEWORKS.index(of.framework) + 1) + 7 * number
            elif end != "missing":
                known[of] = None
    return known


KNOWN = known_throughputs()


def record(of: Of, repeat: int, throughput: float | None) -> dict[str, Any]:
    case = {
        **CASE,
        **{name: getattr(of, name) for name in ("framework", "model", "mode", "precision")},
        "devices_per_node": of.devices,
        "compiler": COMPILERS[of.framework] if of.compiled else "none",
    }
    if throughput is None:
        end = {"status": MODELS[of.model][0], "reason": f"why {of}"}
        return record_of(random.Random(0), case, repeat, **end)
    made = record_of(random.Random(0), case, repeat)
    window = made["samples"] / throughput
    for rank in made["ranks"]:
        steps = len(rank["step_seconds"])
        rank.update(window_seconds=window, step_seconds=[window / steps] * steps)
    metric = {"value": throughput, "unit": "images/s", "better": "higher"}
    return {**made, "window_seconds": window, "metrics": {"throughput": metric}}


@dataclass(frozen=True)
class Report:
    """Files of a report, and the rows of its page."""

    folder: Path
    page: dict[str, list[PageRow]]

    def csv(self, table: str) -> list[dict[str, str]]:
        return read_rows(self.folder / "tables" / f"{table}.csv")

    def markdown(self, table: str) -> list[dict[str, str]]:
        return shown((self.folder / "tables" / f"{table}.md").read_text())

    def page_rows(self, table: str) -> list[dict[str, str]]:
        return [row.cells for row in self.page[table]]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("known")
    (folder / "runs").mkdir()
    for number, ((of, throughput), repeat) in enumerate(product(KNOWN.items(), (1, 2))):
        text = json.dumps(record(of, repeat, throughput))
        (folder / "runs" / f"{number}.json").write_text(text)
    done = framebench("report", "--records", str(folder / "runs"), "--results", str(folder))
    assert done.returncode == 0, done.stderr
    return Report(folder, page_rows((folder / "report.html").read_text()))


def ratio(axes: Of, base: Of) -> float | None:
    over, under = KNOWN.get(axes), KNOWN.get(base)
    return None if over is None or under is None else over / under


def setting_of(axes: Of) -> Of:
    """Return a case's setting in comparisons; JAX is never trained without its compiler."""
    usual = not axes.compiled or (axes.framework, axes.mode) == ("jax", "train")
    return axes.but(framework="", compiled=not usual)


@cache
def wanted(name: str) -> dict[Of, dict[str, float | None]]:
    best: dict[Of, float] = {}
    for axes, value in KNOWN.items():
        best[setting_of(axes)] = max(best.get(setting_of(axes), 0.0), value or 0.0)
    actual: dict[Of, dict[str, float | None]] = {}
    for axes, value in KNOWN.items():
        if name in ("summary", "efficiency"):
            actual[axes] = {"throughput_median": value}
        elif name == "overview":
            actual[axes] = {
                "median": value,
                "part_of_best": value and value / best[setting_of(axes)],
            }
        elif name == "weak_scaling":
            base = axes.but(devices=1)
            actual[axes] = {"throughput_median": value, "speedup": ratio(axes, base)}
        elif name == "precision_speedup" and axes.precision == "amp":
            base = axes.but(precision="fp32")
            actual[axes] = {"throughput": value, "throughput_baseline": KNOWN.get(base)}
            actual[axes]["speedup"] = ratio(axes, base)
        elif name == "compiler_speedup" and axes.compiled:
            base = axes.but(compiled=False)
            actual[axes] = {"throughput": value, "throughput_baseline": KNOWN.get(base)}
    return actual


def of_row(row: Mapping[str, str]) -> Of:
    return Of(
        row["model"], row["framework"], row["mode"], row["precision"], row["compiler"] != "none",
        int(row["devices_per_node"]),
    )  # fmt: skip


@pytest.mark.parametrize("name", [*HEADINGS, "overview"])
def test_the_csv_has_each_figure_in_the_row_of_its_case(report: Report, name: str) -> None:
    rows = {of_row(row): row for row in report.csv(name)}
    expected = wanted(name)
    assert rows.keys() == expected.keys()
    for axes, figures in expected.items():
        for column, value in figures.items():
            cell = rows[axes][column]
            assert cell == "" if value is None else float(cell) == pytest.approx(value), (
                axes,
                column,
            )


def number(text: str) -> float | None:
    match = re.match(r"\d+(\.\d+)?", text.replace("*", ""))
    return float(match[0]) if match else None


def close(text: str, value: float | None) -> bool:
    """Return whether a rounded cell has a value, or has no number for None."""
    shown = number(text)
    if value is None or shown is None:
        return shown is None and value is None
    return shown == pytest.approx(value, rel=2e-3, abs=6e-3)


def on_page(name: str, axes: Of) -> bool:
    """Return whether the page has a row of a case; tables of ratios leave out those without."""
    if name == "compiler_speedup":
        return axes.framework != "jax" and ratio(axes, axes.but(compiled=False)) is not None
    return wanted(name)[axes].get("speedup", 0.0) is not None


@pytest.mark.parametrize("name", HEADINGS)
def test_files_and_page_have_each_figure_in_the_row_of_its_case(report: Report, name: str) -> None:
    every = wanted(name)
    seen = {axes: every[axes] for axes in every if on_page(name, axes)}
    for entry, expected in ((report.markdown(name), every), (report.page_rows(name), seen)):
        assert len(entry) == len(expected)
        for row in entry:
            devices = row["devices"].rpartition("n")[2].removesuffix("g")
            precision = row.get("precision", "amp").partition(" ")[0]
            compiler = row.get("compiler", "").partition(" ")[0]
            axes = of_row(
                {**row, "precision": precision, "compiler": compiler, "devices_per_node": devices}
            )
            for column, value in expected[axes].items():
                assert close(row[HEADINGS[name][column]], value), (axes, column, row)


def test_the_overview_has_each_figure_under_its_setting(report: Report) -> None:
    forms = []
    for rows in (report.markdown("overview"), report.page_rows("overview")):
        cells = {}
        for row in rows:
            model, _, mode = row["measured"].partition(", ")
            for framework in FRAMEWORKS:
                cell = (model, mode.partition(" ")[0], framework, row["setting"])
                cells[cell] = row[framework]
        forms.append(cells)
    settings = product(("fp32", "amp"), (False, True), (1, 2))
    for of in (Of(*part, *rest) for *part, rest in product(MODELS, FRAMEWORKS, MODES, settings)):
        # both cases of this framework are at one setting
        if (of.framework, of.mode) == ("jax", "train"):
            continue
        setting = f"{of.precision} 1n{of.devices}g{' compiled' * of.compiled}"
        for entry in forms:
            text = entry[of.model, of.mode, of.framework, setting]
            assert close(text, KNOWN.get(of)), (of, text)


def test_no_row_of_any_table_has_a_figure_of_another_framework(report: Report) -> None:
    tables = [path.stem for path in (report.folder / "tables").glob("*.csv")]
    assert {*HEADINGS, "overview"} <= {*tables}
    for table in tables:
        for row in report.csv(table):
            if table == "fastest" or row.get("framework") not in FRAMEWORKS:
                continue
            for name, cell in row.items():
                value = number(cell) if "throughput" in name or name == "median" else None
                if value is not None and value >= 1000:
                    assert value // 1000 == FRAMEWORKS.index(row["framework"]) + 1, (table, row)
