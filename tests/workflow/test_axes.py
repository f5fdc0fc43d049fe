"""An axis defined outside the project's folder, from a suite to the filter of the page."""

from __future__ import annotations

import csv
import json
import re

from .conftest import ONE_RUN, ROOT, Project

KINDS = f"kinds={ROOT / 'tests' / 'axes'}"
AXIS, DEFAULT, OTHER = "batch_order", "given", "reversed"


def test_an_axis_of_a_user_flows_from_suite_to_page(project: Project) -> None:
    options = {"mode": ["train", "inference"], AXIS: [DEFAULT, OTHER]}
    project.write_suite({**ONE_RUN, "axes": {**ONE_RUN["axes"], **options}})
    ran = project.measure(KINDS)
    assert ran.returncode == 0, ran.stdout
    records = {path: json.loads(text) for path, text in project.records().items()}
    actual = {path: (record["kind"], record["case"][AXIS]) for path, record in records.items()}
    assert sorted(actual.values(), key=str) == [
        ("inference", None),
        ("train", DEFAULT),
        ("train", OTHER),
    ]
    for path, (_, value) in actual.items():
        assert (f"-{OTHER}-" in path) == (value == OTHER), "the folder's name has the label"
        asked = ["--batch-order", OTHER] if value == OTHER else []
        command = records[path]["command"]
        assert [word for word in command if word in ("--batch-order", OTHER)] == asked
    reported = project.report(KINDS)
    assert reported.returncode == 0, reported.stdout
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
    planned = project.run("--cores", "all", "plan", "--config", KINDS)
    assert "To do: 0 runs" in planned.stdout, planned.stdout
    assert f"{AXIS.replace('_', ' ')} {OTHER}" in planned.stdout, planned.stdout
