"""DLPerf v1.0: every printed cell with runs follows from them, or states why not."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench.features.audit import published
from framebench.features.audit.published import CELL, KEYS, compare_published, half_unit
from framebench.files.whole_files import write_together
from framebench.records import record_sets
from framebench.records.run import Run
from framebench.tables import frames
from framebench.tables.results import CaseResults, group

from ....commands import read_rows
from ...figures import DLPERF


@pytest.fixture(scope="module")
def runs() -> tuple[Run, ...]:
    return record_sets.load(DLPERF).runs


@pytest.fixture(scope="module")
def results(runs: tuple[Run, ...]) -> CaseResults:
    return group(runs, None)


@pytest.fixture(scope="module")
def compared(results: CaseResults) -> pd.DataFrame:
    return compare_published(results, DLPERF / "published.csv")


def test_every_printed_cell_with_runs_agrees_or_has_a_cause(compared: pd.DataFrame) -> None:
    printed = read_rows(DLPERF / "published.csv")
    measured = {tuple(row[key] for key in KEYS) for row in read_rows(DLPERF / "runs.csv")}
    with_runs = [
        row for row in printed
        if tuple(row[key] for key in KEYS) in measured and half_unit(row["printed"]) is not None
    ]  # fmt: skip
    assert len(compared) == len(printed) == 393
    checked = compared[compared["agrees"].notna()]
    assert len(checked) == len(with_runs) == 30
    differing = checked[~checked["agrees"].astype(bool)]
    listed = {tuple(row[name] for name in CELL) for row in read_rows(DLPERF / "causes.csv")}
    assert {tuple(cell) for cell in differing[list(CELL)].to_numpy()} == listed, (
        "causes.csv lists exactly the cells that differ"
    )
    assert published.UNEXPLAINED not in set(compared["note"])
    assert len(checked) - len(differing) == 28


def test_near_matches_are_not_taken_for_matches(compared: pd.DataFrame) -> None:
    oneflow = compared[(compared["framework"] == "oneflow") & (compared["printed"] == "397.64")]
    assert oneflow["note"].item() == "no runs of this case", "its runs are of another version"


def publish(folder: Path, **changes: Any) -> Path:
    cell = {**read_rows(DLPERF / "published.csv")[8], **changes}
    assert cell["framework"] == "mxnet"
    path = folder / "published.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(cell))
        writer.writeheader()
        writer.writerow(cell)
    return path


def test_a_difference_without_a_cause_is_unexplained(results: CaseResults, tmp_path: Path) -> None:
    actual = compare_published(results, publish(tmp_path, printed="392.25")).iloc[0]
    assert not actual["agrees"]
    assert (actual["recomputed"], actual["note"]) == (392.24, published.UNEXPLAINED)


def test_a_speedup_without_1n1g_has_no_verdict(
    runs: tuple[Run, ...], results: CaseResults, tmp_path: Path
) -> None:
    path = publish(tmp_path, quantity="speedup", printed="7.67", devices_per_node="8")
    assert bool(compare_published(results, path)["agrees"].item())
    others = group([run for run in runs if run.case.devices_per_node == 8], None)
    actual = compare_published(others, path).iloc[0]
    assert pd.isna(actual["agrees"])
    assert actual["note"] == "no 1n1g run"


def test_the_comparison_is_written_with_its_counts(compared: pd.DataFrame, tmp_path: Path) -> None:
    write_together(frames.files({published.TABLE: compared}, tmp_path))
    text = (tmp_path / "published.md").read_text()
    assert "393 printed cells; 30 with runs, of which 28 agree and 2 differ; 363 without" in text
    assert len(read_rows(tmp_path / "published.csv")) == 393
