"""Odd files among the results: good ones are shown, bad ones named, and nothing stops."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pandas as pd
import pytest
from framebench import cli
from framebench.files import json_files
from framebench.records import device_peaks, record_sets, searches, verifications
from framebench.records.run import Problem

from ..odd_results import BATCH, GOOD, ODD, write_odd_results
from ..settings import plan as plan_of


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_odd_results(tmp_path_factory.mktemp("odd"))


def names_below(folder: Path) -> set[str]:
    """Return all files with names of records, also through links."""
    return {
        json_files.origin_of(Path(home, name), folder)
        for home, folders, names in os.walk(folder)
        for name in [*folders, *names]
        if name.endswith(".json") and not is_folder(Path(home, name))
    }


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def origins(problems: tuple[Problem, ...] | list[Problem]) -> set[str]:
    return {problem.origin for problem in problems}


def test_every_odd_record_is_a_run_or_a_problem(results: Path) -> None:
    actual = record_sets.load(results / "runs")
    runs = {run.origin for run in actual.runs}
    assert {f"good/case/r{n}.json" for n in range(1, GOOD + 1)} <= runs
    assert runs | origins(actual.problems) == names_below(results / "runs")
    assert len(actual.problems) > ODD / 3, "the odd ones are odd"


def test_every_odd_file_beside_the_records_is_read_or_named(results: Path) -> None:
    for folder, load in (("verification", verifications.load), ("peak_flops", device_peaks.load)):
        read, problems = load(results / folder)
        assert read, folder
        assert problems, folder
        assert origins(problems) <= {f"{folder}/{name}" for name in names_below(results / folder)}
    searched, problems = searches.load(results / "largest_batch")
    assert searched
    assert problems


def test_a_report_is_made_of_what_is_good_and_names_the_rest(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = results / "runs"
    assert cli.main(["report", "--records", str(runs), "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    for problem in record_sets.load(runs).problems:
        assert f"ignored: {problem.origin}: " in printed.err
    assert "ignored: interruptions.csv:4: found 1 cells; allowed: 4" in printed.err
    summary = pd.read_csv(tmp_path / "tables" / "summary.csv")
    (row,) = summary[summary["batch_per_device"] == BATCH].to_dict("records")
    assert (row["framework"], row["repeats"]) == ("pytorch", GOOD)
    assert row["throughput_median"] > 0
    page = (tmp_path / "report.html").read_text()
    assert "CANCELLED" in page
    named = [
        problem
        for problem in record_sets.load(runs).problems
        if f"<td>{problem.origin}</td>" in page
    ]
    assert len(named) > ODD / 3


def test_a_plan_and_comparison_go_on_too(results: Path, tmp_path: Path) -> None:
    planned = plan_of(tmp_path, results=str(results))
    assert planned.pending
    runs = results / "runs"
    arguments = ["--base", str(runs), "--candidate", str(runs), "--results", str(tmp_path)]
    assert cli.main(["compare", *arguments]) == 0
