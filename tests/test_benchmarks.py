"""Benchmarks are run by hand: everything that they import must still exist."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from .conftest import ROOT


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
