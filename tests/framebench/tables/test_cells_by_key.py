"""Figures are in the row of their case and under their heading, in every table and file.
They are compared with figures computed here from the runs alone, whichever case has none."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from framebench.records.run import Run
from framebench.report import html_tables, page_data
from framebench.report.record_links import RowLinks
from framebench.tables import frames, registry
from framebench.tables.grouping import group
from framebench.tables.table import Inputs, Table

from ..made_up_runs import repeats
from ..made_up_trainings import trained

FRAMEWORKS = ("jax", "mxnet", "pytorch", "tensorflow")
COMPILERS = {"jax": "jit", "mxnet": "hybridize", "pytorch": "inductor", "tensorflow": "xla"}
ENDS = ("unsupported", "failed", "missing")
PLACES = {"first": FRAMEWORKS[:1], "middle": FRAMEWORKS[1:3], "last": FRAMEWORKS[-1:]}


class Of(NamedTuple):
    """Axes that distinguish the cases of this module."""

    framework: str
    mode: str
    precision: str
    compiled: bool
    devices: int

    def but(self, **other: Any) -> Of:
        return self._replace(**other)


#: Throughput by case, None without a figure. Each framework has its own range of a thousand.
Known = Mapping[Of, float | None]


def known_of(frameworks: tuple[str, ...], end: str) -> dict[Of, float | None]:
    """Return the known throughputs.
    ``frameworks``: those whose mixed precision ended with the status ``end``."""
    known: dict[Of, float | None] = {}
    axes = product(FRAMEWORKS, ("train", "inference"), ("fp32", "amp"), (False, True), (1, 2))
    for number, of in enumerate(Of(*values) for values in axes):
        if of.precision == "amp" and of.framework in frameworks:
            if end != "missing":
                known[of] = None
        else:
            known[of] = 1000.0 * (FRAMEWORKS.index(of.framework) + 1) + 7 * number
    return known


def runs_of(known: Known, end: str) -> list[Run]:
    runs = []
    for of, value in known.items():
        case = {
            "framework": of.framework,
            "mode": of.mode,
            "precision": of.precision,
            "compiler": COMPILERS[of.framework] if of.compiled else "none",
            "devices_per_node": of.devices,
        }
        made = repeats(value, value, **case)
        if value is None:
            made = [replace(run, status=end, reason=f"why {of}") for run in made]
        runs += made
    return runs


def trainings_of(frameworks: tuple[str, ...], end: str) -> tuple[list[Run], dict[Any, float]]:
    """Return trainings, and their mean score in percent by framework and precision."""
    runs, scores = [], {}
    for framework, precision in product(FRAMEWORKS, ("fp32", "amp")):
        ends = precision == "amp" and framework in frameworks
        if ends and end == "missing":
            continue
        score = 0.9 + FRAMEWORKS.index(framework) / 100 + (precision == "amp") / 1000
        for seed in range(2):
            run = trained(0.5, score, seed=seed, framework=framework, precision=precision)
            if ends:
                nothing = tuple(one._replace(value=None) for one in run.metrics)
                run = replace(run, status=end, reason="why", metrics=nothing, curve=None)
            runs.append(run)
        if not ends:
            scores[framework, precision] = 100 * score
    return runs, scores


@pytest.fixture(scope="module", params=list(product(ENDS, PLACES)), ids=lambda pair: " ".join(pair))
def made(request: pytest.FixtureRequest) -> tuple[Known, dict[Any, float], dict[Table, Any]]:
    end, place = request.param
    known = known_of(PLACES[place], end)
    runs, scores = trainings_of(PLACES[place], end)
    inputs = Inputs(group(runs_of(known, end), None), others=group(runs, None))
    return known, scores, frames.build(inputs)


def ratio(known: Known, of: Of, base: Of) -> float | None:
    """Return one throughput over another."""
    over, under = known.get(of), known.get(base)
    return None if over is None or under is None else over / under


def setting_of(of: Of) -> Of:
    """Return a case's setting in comparisons of frameworks; JAX is never trained without its
    compiler."""
    usual = not of.compiled or (of.framework, of.mode) == ("jax", "train")
    return of.but(framework="", compiled=not usual)


def wanted(name: str, known: Known) -> dict[Of, dict[str, float | None]]:
    """Return the expected figures of a table by case."""
    found: dict[Of, dict[str, float | None]] = {}
    for of, value in known.items():
        if name in ("summary", "efficiency"):
            found[of] = {"throughput_median": value}
        elif name == "overview":
            alike = (other for other in known if setting_of(other) == setting_of(of))
            best = max(known[other] or 0.0 for other in alike)
            found[of] = {"median": value, "part_of_best": value and value / best}
        elif name == "weak_scaling":
            base = of.but(devices=1)
            found[of] = {"throughput_median": value, "speedup": ratio(known, of, base)}
        elif name == "precision_speedup" and of.precision == "amp":
            base = of.but(precision="fp32")
            found[of] = {"throughput": value, "throughput_baseline": known.get(base)}
            found[of]["speedup"] = ratio(known, of, base)
        elif name == "compiler_speedup" and of.compiled:
            base = of.but(compiled=False)
            found[of] = {"throughput": value, "throughput_baseline": known.get(base)}
    return found


EXACT = ("summary", "efficiency", "overview", "weak_scaling", "precision_speedup",
         "compiler_speedup")  # fmt: skip


def of_row(row: Mapping[str, Any]) -> Of:
    return Of(
        row["framework"], row["mode"], row["precision"], row["compiler"] != "none",
        int(row["devices_per_node"]),
    )  # fmt: skip


def number(text: str) -> float | None:
    """Return the first number of a cell; None without any."""
    match = re.match(r"\d+(\.\d+)?", text.replace("*", ""))
    return float(match[0]) if match else None


def close(text: str, value: float | None) -> bool:
    """Return whether a rounded cell has a value, or has no number for None."""
    if value is None:
        return number(text) is None
    shown = number(text)
    return shown is not None and shown == pytest.approx(value, rel=2e-3, abs=6e-3)


@pytest.mark.parametrize("name", EXACT)
def test_the_csv_has_each_figure_in_the_row_of_its_case(made: Any, name: str) -> None:
    known, _, tables = made
    (text,) = (frames.csv_text(rows) for table, rows in tables.items() if table.name == name)
    steps = (row for row in csv.DictReader(text.splitlines()) if row["mode"] != "converge")
    rows = {of_row(row): row for row in steps}
    expected = wanted(name, known)
    assert rows.keys() == expected.keys()
    for of, figures in expected.items():
        for column, value in figures.items():
            cell = rows[of][column]
            assert cell == "" if value is None else float(cell) == pytest.approx(value), (
                of,
                column,
            )


def markdown_rows(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row of a file's tables by heading, with the title above it."""
    title = ""
    header: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            title, header = line.lstrip("# "), []
        elif line.startswith("|") and not line.startswith("|-"):
            cells = [one.strip() for one in line.strip("|").split(" | ")]
            if header:
                yield title, dict(zip(header, cells, strict=True))
            header = header or cells


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
        return [some["of"][place] for place in some["at"]]

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
    for found in (lines, list(page_rows(table, rows))):
        assert len(found) == len(expected)
        for row in found:
            compiler = row.get("compiler", "")
            precision = row.get("precision", "amp").partition(" ")[0]
            compiled = compiler.partition(" ")[0] not in ("none", "")
            devices = int(row["devices"].rpartition("n")[2].removesuffix("g"))
            of = Of(row["framework"], row["mode"], precision, compiled, devices)
            for column, value in expected[of].items():
                assert close(row[table.by_name[column].header], value), (of, column, row)


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
    tex = files[Path("t", "overview.tex")]
    for of in (Of(*axes) for axes in product(
        FRAMEWORKS, ("train", "inference"), ("fp32", "amp"), (False, True), (1, 2)
    )):  # fmt: skip
        if (of.framework, of.mode) == ("jax", "train"):  # both of its cases are at one setting
            continue
        setting = f"{of.precision} 1n{of.devices}g{' compiled' * of.compiled}"
        value = known.get(of)
        for found in (digits, page):
            text = found[of.framework, of.mode == "inference", setting]
            assert close(text, value), (of, text)
        if value is not None:
            (line,) = (one for one in tex.splitlines() if f" {value:.4g} (" in one)
            assert line.startswith(of.framework), (of, line)


def layout_rows(tables: Mapping[Table, Any], name: str) -> Iterator[dict[str, str]]:
    """Yield our rows in a layout of NVIDIA's, from the file and then from the page."""
    ((table, rows),) = ((t, rows) for t, rows in tables.items() if t.name == name)
    text = frames.files({table: rows}, Path("t"))[Path("t", f"{name}.md")]
    yield from (row for title, row in markdown_rows(text) if "Framework" in row)
    for layout, lines in html_tables.of_frame(table, rows).layouts:
        for _, cells in lines:
            yield {title: cells[title].text for title in layout.header}


def test_nvidias_layout_of_training_has_both_precisions_of_one_case(made: Any) -> None:
    known, _, tables = made
    found = list(layout_rows(tables, "nvidia_training"))
    amps = [of for of in known if of.precision == "amp" and of.mode == "train"]
    assert len(found) == 2 * len(amps)
    for row in found:
        framework, _, *compiler = row["Framework"].split()
        of = Of(framework, "train", "amp", bool(compiler), int(row["GPUs"]))
        full = of.but(precision="fp32")
        assert close(row["Throughput - mixed precision"], known[of]), row
        assert close(row["Throughput - FP32"], known[full]), row
        assert close(row["Throughput speedup (FP32 - mixed precision)"], ratio(known, of, full))
        weak = ratio(known, of, of.but(devices=1))
        assert close(row.get("Weak scaling - mixed precision", ""), weak), row


def test_nvidias_layouts_of_scores_have_both_precisions_of_one_case(made: Any) -> None:
    _, scores, tables = made
    for name, title in (("nvidia_accuracy", "Accuracy - {}"), ("nvidia_seeds", "{} avg accuracy")):
        ((table, rows),) = ((t, rows) for t, rows in tables.items() if t.name == name)
        assert len(html_tables.of_frame(table, rows).layouts) == 1, "one table of one title"
        found = list(layout_rows(tables, name))
        assert len(found) % 2 == 0
        assert found
        for row in found:
            framework = row["Framework"].split()[0]
            for precision, words in (("amp", "mixed precision"), ("fp32", "FP32")):
                value = scores.get((framework, precision))
                assert close(row[title.format(words)], value), (name, row)


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
