"""A suite that measures each node, from the suite to the exit status of the call."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from ..conftest import ROOT
from ..csv_rows import read_rows
from .conftest import Project


def test_the_same_records_end_with_the_same_status(project: Project, tmp_path: Path) -> None:
    kinds, rules = tmp_path / "kinds", tmp_path / "rules.yaml"
    shutil.copytree(ROOT / "tests" / "kinds", kinds)
    rules.write_text("rules: {copy: {metrics: memory_copy/bandwidth/.*}}\n")
    suite = {"repeats": 1, "measurements": {"memory_copy": {"size": 1000}}, "nodes_named": "all"}
    project.write_suite(suite)
    first = project.all(f"kinds={kinds}", f"node_rules={rules}", "fail_on=5%")
    assert first.returncode == 5, first.stdout
    assert first.stdout.splitlines()[-1] == "nodes: cannot tell (5)"
    (record,) = project.parsed()
    assert record["settings"]["node"] == socket.gethostname()
    table = project.folder / "results" / "tables" / "nodes.csv"
    (row,) = read_rows(table)
    assert (row["node"], row["node_verdict"], row["rule"]) == (
        socket.gethostname(), "cannot tell", "copy",
    )  # fmt: skip
    assert row["reason"] == "needs 3 nodes of one kind of hardware, or a baseline"
    text = table.read_text()
    # The rules are kept with the results; nothing is left to measure.
    again = project.all(f"kinds={kinds}", "fail_on=5%")
    assert again.returncode == 5, again.stdout
    assert again.stdout.splitlines()[-1] == "nodes: cannot tell (5)"
    assert table.read_text() == text
