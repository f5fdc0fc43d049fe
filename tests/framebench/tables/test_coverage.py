"""A part of a suite is marked as partial, and has no winner."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from framebench import cli
from framebench.records import record_sets
from framebench.records.sidecars import (
    EXPECTED,
    TOO_SLOW,
    ExpectedCase,
    load_expected,
    write_expected,
)
from framebench.report import html_report
from framebench.tables.declared.fastest import FASTEST
from framebench.tables.results import group
from framebench.tables.setting_answers import coverage
from framebench.tables.table import Inputs, frame_rows

from ...commands import read_rows
from ..made_up_records import write_records

FRAMEWORKS = ("jax", "tensorflow")


def expected_of(records: Path, suite: str = "small") -> list[ExpectedCase]:
    runs = {Path(run.origin).parent: run for run in record_sets.load(records).runs}
    return [
        ExpectedCase(
            suite,
            str(folder),
            run.case._replace(framework_version=""),
            run.conditions.unlabelled,
        )
        for folder, run in runs.items()
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("whole")
    write_records(results / "runs", repeats=1, frameworks=FRAMEWORKS)
    for record in (results / "runs").glob("*/*/r1.json"):
        case = json.loads(record.read_text())
        if (case["case"]["model"], case["kind"]) != ("resnet50_v1.5", "train"):
            shutil.rmtree(record.parent)
    write_expected(results, "small", expected_of(results / "runs"), is_whole=True)
    return results


def without(whole: Path, results: Path, *removed: str) -> Path:
    shutil.copytree(whole, results)
    for pattern in removed:
        for folder in (results / "runs").glob(pattern):
            shutil.rmtree(folder)
    return results


def report(results: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    arguments = ["--records", str(results / "runs"), "--results", str(results)]
    with patch.object(html_report, "draw_table", return_value=[]):  # charts take long
        assert cli.main(["report", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines(), (results / "report.html").read_text()


def rows_of(results: Path, name: str) -> list[dict[str, str]]:
    return read_rows(results / "tables" / f"{name}.csv")


def test_a_suite_without_one_framework_has_no_winner(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = without(whole, tmp_path / "results", "tensorflow")
    lines, page = report(results, capsys)
    covered = "8 of 16 cases of suite small measured; not yet: tensorflow (8 of 8)"
    assert any("not measured yet: TensorFlow" in line for line in lines)
    assert not any("ahead of" in line or "fastest" in line for line in lines), "a winner"
    assert f"{covered.replace('tensorflow', 'TensorFlow 2')}." in page
    for row in rows_of(results, "fastest"):
        assert (row["framework"], row["median"], row["missing"]) == ("", "", "tensorflow")
    assert {row["part_of_best"] for row in rows_of(results, "overview")} == {""}


def test_a_framework_that_the_plan_leaves_out_is_named_and_holds_no_winner_back(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = without(whole, tmp_path / "results", "tensorflow")
    cases = [
        replace(case, folder="", left_out=f"{TOO_SLOW}10 min")
        if case.case.framework == "tensorflow"
        else case
        for case in expected_of(whole / "runs")
    ]
    write_expected(results, "small", cases, is_whole=True)
    lines, page = report(results, capsys)
    assert any("TensorFlow" in line and "not measured yet" not in line for line in lines)
    rows = rows_of(results, "fastest")
    assert {row["framework"] for row in rows if row["median"]} == {"jax"}
    assert {row["missing"] for row in rows} == {""}
    settings = page.count('<section class="setting"')
    assert page.count(">too slow for 10 min: TensorFlow 2<") == settings > 1


def test_a_setting_that_all_have_measured_has_its_winner(whole: Path) -> None:
    """One case with a compiler is missing; it might be the fastest."""
    cases = expected_of(whole / "runs")
    (missing,) = (
        case.folder
        for case in cases
        if (case.case.framework, case.case.precision) == ("tensorflow", "fp32")
        and (case.case.compiler, case.case.devices) == ("xla", 1)
    )
    runs = [
        run
        for run in record_sets.load(whole / "runs").runs
        if str(Path(run.origin).parent) != missing
    ]
    inputs = Inputs(group(runs, None), expected=cases)
    (covered,) = coverage(inputs)
    assert covered == "15 of 16 cases of suite small measured; not yet: tensorflow (1 of 8)"
    open_, *others = sorted(
        frame_rows(inputs.frame_of(FASTEST)), key=lambda row: not row["missing"]
    )
    assert (open_["precision"], open_["devices_per_node"]) == ("fp32", 1)
    assert (open_["framework"], open_["reason"]) == ("", "not measured yet: tensorflow")
    assert len(others) == 3
    assert all(row["framework"] and not row["missing"] for row in others)


def test_a_call_for_a_part_of_the_suite_forgets_none_of_the_others(
    whole: Path, tmp_path: Path
) -> None:
    cases = expected_of(whole / "runs")
    write_expected(tmp_path, "small", cases, is_whole=True)
    write_expected(tmp_path, "other", [replace(cases[0], suite="other")], is_whole=True)
    write_expected(tmp_path, "small", cases[:3], is_whole=False)
    actual, problems = load_expected(tmp_path)
    assert not problems
    assert sorted(actual, key=str) == sorted([*cases, replace(cases[0], suite="other")], key=str)
    write_expected(tmp_path, "small", cases[:3], is_whole=True)
    assert len(load_expected(tmp_path)[0]) == 4
    assert json.loads((tmp_path / EXPECTED).read_text())
