"""Benchmarks are run by hand: everything that they import must still exist."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

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


def benchmark(name: str) -> Any:
    with patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        return import_module(name)


def test_loops_take_turns_and_the_first_rounds_do_not_count() -> None:
    in_turn, order = benchmark("in_turn"), []
    loops = {
        name: in_turn.repeated(lambda n=name: order.append(n), 2, lambda: order.append("wait"))
        for name in "ab"
    }
    actual = in_turn.measure(loops, 2, 2)
    assert "".join(order).replace("wait", "|") == "bb|aa|aa|bb|" * 2
    assert {name: len(seconds) for name, seconds in actual.items()} == {"a": 2, "b": 2}


def test_a_ratio_is_of_the_rounds_and_has_their_interval() -> None:
    ratio = benchmark("in_turn").ratio
    assert ratio([1.0, 2.0, 4.0], [2.0, 2.0, 2.0]) == (1.0, 0.5, 2.0)
    middle, low, high = ratio([1.0] * 12, [1.0 + 0.01 * n for n in range(12)])
    assert 1.0 < low < middle < high < 1.11
