"""Benchmarks are run by hand: everything that they import must still exist."""

from __future__ import annotations

import ast
import csv
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from .conftest import ROOT, build_environment


def taken(path: Path) -> list[tuple[str, str]]:
    """Return module and name of each import from the workflow or the tests."""
    nodes = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    return [
        (node.module, alias.name)
        for node in nodes
        if node.module and node.module.split(".")[0] in ("framebench", "harness", "tests")
        for alias in node.names
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    for module, name in taken(path):
        try:
            actual = hasattr(import_module(module), name) or import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            actual = False
        assert actual, f"from {module} import {name}"


def test_official_code_is_compared_with_ours(tmp_path: Path) -> None:
    build_environment("paddle")
    command = [sys.executable, str(ROOT / "benchmarks" / "peers.py"), "--framework", "paddle"]
    command += ["--mode", "inference", "--compiler", "none", "--model", "resnet50_v1.5"]
    command += ["--batch", "1", "--image-size", "32", "--rounds", "6", "--steps", "1"]
    run = subprocess.run([*command, "--results", str(tmp_path)], capture_output=True, text=True)
    (row,) = csv.DictReader((tmp_path / "paddle.csv").read_text().splitlines())
    assert run.returncode == (row["verdict"] == "missed"), run.stderr
    assert (row["peer"], row["rounds"]) == ("paddle.vision", "6")
    assert 0 < float(row["ratio_low"]) <= float(row["ratio"]) <= float(row["ratio_high"])


def test_the_harness_is_timed_beside_a_bare_loop(pytorch_python: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "harness_overhead.py")]
    command += ["--batch", "1", "--steps", "1", "--rounds", "1", "--python", pytorch_python]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.count("ms") == 2, run.stderr
    assert "ratio: " in run.stdout
