"""A suite that measures each node, from the suite to the exit status of ``nodes``."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from ...commands import framebench
from ...conftest import ROOT
from ...csv_rows import read_rows
from ..conftest import Project


def test_nodes_of_a_suite_are_measured_and_judged(project: Project, tmp_path: Path) -> None:
    kinds, rules = tmp_path / "kinds", tmp_path / "rules.yaml"
    shutil.copytree(ROOT / "tests" / "kinds", kinds)
    rules.write_text("rules: {copy: {metrics: memory_copy/bandwidth/.*}}\n")
    suite = {"repeats": 1, "measurements": {"memory_copy": {"size": 1000}}, "nodes_named": "all"}
    project.write_suite(suite)
    ran = project.measure(f"kinds={kinds}")
    assert ran.returncode == 0, ran.stdout
    (record,) = project.parsed()
    assert record["settings"]["node"] == socket.gethostname()
    results = str(project.folder / "results")
    judged = framebench("nodes", "--results", results, "--rules", str(rules))
    assert judged.returncode == 5
    assert "cannot tell: of none of 1 nodes it can be told" in judged.stderr
    (row,) = read_rows(project.folder / "results" / "tables" / "nodes.csv")
    assert (row["node"], row["node_verdict"], row["rule"]) == (
        socket.gethostname(), "cannot tell", "copy",
    )  # fmt: skip
    assert row["reason"] == "needs 3 nodes of one kind of hardware, or a baseline"
