"""The benchmarks are run by hand: what they take from the project must still be there."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from .conftest import ROOT


def taken(path: Path) -> list[tuple[str, str]]:
    """Module and name of each import from the workflow or the tests."""
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
            found = hasattr(import_module(module), name) or import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            found = False
        assert found, f"from {module} import {name}"


def benchmark(name: str) -> Any:
    with patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        return import_module(name)


def test_loops_take_turns_and_the_first_rounds_do_not_count() -> None:
    in_turn, order = benchmark("in_turn"), []
    loops = {
        name: in_turn.repeated(lambda n=name: order.append(n), 2, lambda: order.append("wait"))
        for name in "ab"
    }
    found = in_turn.measure(loops, 2, 2)
    assert "".join(order).replace("wait", "|") == "bb|aa|aa|bb|" * 2
    assert {name: len(seconds) for name, seconds in found.items()} == {"a": 2, "b": 2}


def test_a_ratio_is_of_the_rounds_and_has_their_interval() -> None:
    ratio = benchmark("in_turn").ratio
    assert ratio([1.0, 2.0, 4.0], [2.0, 2.0, 2.0]) == (1.0, 0.5, 2.0)
    middle, low, high = ratio([1.0] * 12, [1.0 + 0.01 * n for n in range(12)])
    assert 1.0 < low < middle < high < 1.11


def network(factor: float) -> SimpleNamespace:
    """Whose outputs and gradients are its weights, times ``factor``."""
    held: dict[str, Any] = {"w": np.ones(3), "b": np.zeros(2)}
    return SimpleNamespace(
        case=SimpleNamespace(mode="train"),
        weights=lambda: dict(held),
        statistics=dict,
        load_weights=lambda given: held.update({"w": given["w2"], "b": given["b2"]}),
        outputs=lambda: [held["w"]],
        gradients=lambda: {
            "w": held["w"],
            "w2": factor * held["w"],
            "b": held["b"],
            "b2": held["b"],
        },
    )


@pytest.mark.parametrize(("factor", "same"), [(1.0, True), (1.01, False)])
def test_the_described_network_is_compared_with_the_weights_of_the_handwritten_one(
    factor: float, same: bool
) -> None:
    described, handwritten = benchmark("described"), network(1.0)
    handwritten.gradients = lambda: {"w": np.ones(3), "b": np.zeros(2)}
    distance = described.distance(handwritten, network(factor), {"w": "w2", "b": "b2"})
    assert (distance < described.SAME) is same
    seconds = {model: [1.0] * 3 for model in ("resnet50_v1.5", "resnet50")}
    found = {"distance": distance, "seconds": seconds}
    assert described.report("toy", "train", found) is same
    seconds["resnet50_v1.5"] = [0.98] * 3
    assert not described.report("toy", "train", found), "two percent slower"


def test_the_described_network_has_the_arrays_of_the_handwritten_one() -> None:
    names = benchmark("described").same_arrays()
    assert names["blocks.0.shortcut.conv.weight"] == "layer1.0.downsample.0.weight"
    assert len(set(names.values())) == len(names) == 267
