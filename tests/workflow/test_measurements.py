"""A benchmark in a folder outside the unchanged project, from suite to table and report."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from ..commands import framebench, read_rows
from ..conftest import ROOT
from .conftest import Project

COPY = {
    "repeats": 2,
    "measurements": {"memory_copy": {"size": [1000, 100_000], "devices_per_node": 2}},
}


def test_a_kind_from_elsewhere_gets_its_table(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = tmp_path / "kinds"
    shutil.copytree(ROOT / "tests" / "kinds", kinds)
    project.write_suite(COPY)
    done = project.measure(f"kinds={kinds}", check=True)
    records = project.parsed()
    assert [record["status"] for record in records] == ["ok"] * 4, done.stdout
    assert {record["kind"] for record in records} == {"memory_copy"}

    reported = project.report(f"kinds={kinds}", check=True)
    results = project.folder / "results"
    table = read_rows(results / "tables" / "memory_copy.csv")
    assert {(row["size"], row["devices_per_node"], row["metric"]) for row in table} == {
        (size, devices, metric)
        for size in ("1000", "100000")
        for devices in ("2",)
        for metric in ("bandwidth", "longest_copy")
    }
    for row in table:
        values = [
            record["metrics"][row["metric"]]["value"]
            for record in records
            if str(record["parameters"]["size"]) == row["size"]
            and str(record["case"]["devices_per_node"]) == row["devices_per_node"]
        ]
        assert len(values) == 2
        assert float(row["median"]) == pytest.approx(sum(values) / 2)
    assert read_rows(results / "tables" / "summary.csv") == []
    page = (results / "report.html").read_text()
    assert 'id="memory-copy"' in page, "a part of the report"
    assert "100000" in page
    assert "bandwidth" in reported.stdout, "the terminal says what came out"

    before = project.records()
    assert project.measure(f"kinds={kinds}").returncode == 0
    assert project.records() == before, "what is measured is measured again"


def test_nodes_of_a_suite_are_measured_and_judged(project: Project, tmp_path: Path) -> None:
    kinds, rules = tmp_path / "kinds", tmp_path / "rules.yaml"
    shutil.copytree(ROOT / "tests" / "kinds", kinds)
    rules.write_text("rules: {copy: {metrics: memory_copy/bandwidth/.*}}\n")
    suite = {"repeats": 1, "measurements": {"memory_copy": {"size": 1000}}, "nodes_named": "all"}
    project.write_suite(suite)
    project.measure(f"kinds={kinds}", check=True)
    (record,) = project.parsed()
    assert record["settings"]["node"] == socket.gethostname()
    results = str(project.folder / "results")
    judged = framebench("nodes", "--results", results, "--rules", str(rules))
    assert judged.returncode == 5
    assert "cannot tell: none of 1 nodes can be judged" in judged.stderr
    (row,) = read_rows(project.folder / "results" / "tables" / "nodes.csv")
    assert (row["node"], row["node_verdict"], row["rule"]) == (
        socket.gethostname(), "cannot tell", "copy",
    )  # fmt: skip
    assert row["reason"] == "needs 3 nodes of one kind of hardware, or a baseline"
