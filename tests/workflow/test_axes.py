"""An axis defined outside the project's folder, from a suite to the filter of the page."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import pytest

from .conftest import ROOT, SUITE, Project

KINDS = f"kinds={ROOT / 'tests' / 'axes'}"
AXIS, DEFAULT, OTHER = "batch_order", "given", "reversed"


def suite_with(values: object) -> dict[str, Any]:
    return {**SUITE, "repeats": 1, "axes": {**SUITE["axes"], AXIS: values}}  # type: ignore[dict-item]


def test_an_axis_of_a_user_flows_from_suite_to_page(project: Project) -> None:
    project.write_suite(suite_with([DEFAULT, OTHER]))
    finished = project.all(KINDS)
    assert finished.returncode == 0, finished.stdout
    records = {path: json.loads(text) for path, text in project.records().items()}
    found = {path: (one["kind"], one["case"][AXIS]) for path, one in records.items()}
    assert sorted(found.values(), key=str) == [
        ("inference", None),
        ("train", DEFAULT),
        ("train", OTHER),
    ]
    for path, (_, value) in found.items():
        assert (f"-{OTHER}-" in path) == (value == OTHER), "the folder's name has the label"
        asked = ["--batch-order", OTHER] if value == OTHER else []
        command = records[path]["command"]
        assert [word for word in command if word in ("--batch-order", OTHER)] == asked
    tables = project.folder / "results" / "tables"
    with (tables / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["mode"], row[AXIS]) for row in csv.DictReader(file)]
    assert sorted(rows) == [("inference", DEFAULT), ("train", DEFAULT), ("train", OTHER)]
    page = (project.folder / "results" / "report.html").read_text(encoding="utf-8")
    written = re.search(r'<script[^>]*id="rows"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert written, "the page has no rows"
    data = json.loads(written[1])
    assert AXIS in data["axes"], "the reader cannot choose among its values"
    assert any(AXIS in table["axes"] for table in data["tables"])
    assert "order of the batch" in page, "its column has a title"
    again = project.all(KINDS)
    assert "Nothing to be done" in again.stdout, again.stdout
    planned = project.run("--cores", "1", "plan", "--config", KINDS)
    assert f"{AXIS.replace('_', ' ')} {OTHER}" in planned.stdout, planned.stdout


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["backwards"], ["axes.batch_order: found ['backwards']", "one of given, reversed"]),
        ([OTHER, OTHER], ["axes.batch_order", "twice"]),
    ],
)
def test_wrong_values_are_refused(project: Project, values: object, words: list[str]) -> None:
    project.write_suite(suite_with(values))
    finished = project.run("-n", "--config", KINDS)
    assert finished.returncode != 0
    assert all(word in finished.stdout for word in words), finished.stdout


def test_an_unknown_axis_is_refused(project: Project) -> None:
    project.write_suite(suite_with([OTHER]))
    finished = project.run("-n")
    assert finished.returncode != 0
    assert "batch_order" in finished.stdout, finished.stdout
