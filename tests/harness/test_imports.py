"""Imports in the harness go one way, and an adapter takes from it what is meant for adapters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import ROOT

SCRIPTS = ROOT / "scripts"

#: Packages and modules of the harness, in the order of their imports: each from those before it.
ORDER = [
    "VERSION",
    # what a framework's adapter sees
    "bounded",
    "step_breakdown",
    "adapter",
    "optimizers",
    "operations",
    "communication",
    "overlapping",
    "sharded",
    "transfers",
    "device_memory",
    "loader",
    "batch_input",
    "common_capabilities",
    "layerwise",
    "variables",
    "hooks",
    # the machine, and what the processes of a run need
    "machine",
    "disk",
    "messages",
    "samples",
    "devices",
    "processes",
    "telemetry",
    # one rank
    "kind",
    "measuring",
    "learning",
    "kinds",
    "rank",
    "start_rank",
    # a run, from the command line to its record
    "request",
    "describe",
    "describe_model",
    "describe_data",
    "try_model",
    "try_imports",
    "provenance",
    "record",
    "nodes",
    "start_node",
    "start_nodes",
    "search",
    "launcher",
    "__main__",
]

#: What an adapter may import of the harness.
OF_ADAPTERS = {
    *(
        "adapter",
        "optimizers",
        "operations",
        "communication",
        "overlapping",
        "sharded",
        "transfers",
    ),
    *(
        "loader",
        "batch_input",
        "common_capabilities",
        "layerwise",
        "step_breakdown",
        "device_memory",
    ),
    *("machine.interfaces", "processes.parent_death"),
}


def imported(source: str) -> Iterator[str]:
    """What of the harness ``source`` imports, without ``harness.``, at its top or within."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name[len("harness.") :] for name in names if name.startswith("harness."))


def against_the_order(module: str, source: str) -> list[str]:
    """What ``module`` (its package, or its own name at the top) must not import."""
    allowed = ORDER[: ORDER.index(module) + 1]
    return [name for name in imported(source) if name.split(".")[0] not in allowed]


def beyond_the_interface(source: str) -> list[str]:
    """What an adapter must not import."""
    return [
        name
        for name in imported(source)
        if not any(name == one or name.startswith(f"{one}.") for one in OF_ADAPTERS)
    ]


def modules() -> list[Path]:
    return sorted(SCRIPTS.joinpath("harness").rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SCRIPTS).as_posix())
def test_imports_go_one_way(path: Path) -> None:
    module = path.relative_to(SCRIPTS / "harness").parts[0]
    if module != "__init__.py":
        assert against_the_order(module.removesuffix(".py"), path.read_text()) == []


def test_adapters_import_their_interface_alone() -> None:
    adapters = {
        path.relative_to(SCRIPTS).as_posix(): beyond_the_interface(path.read_text())
        for path in sorted(SCRIPTS.joinpath("frameworks").rglob("*.py"))
    }
    assert adapters, "no adapter was looked at"
    assert {name: wrong for name, wrong in adapters.items() if wrong} == {}


def test_a_wrong_import_is_seen() -> None:
    assert against_the_order("machine", "def f():\n    from harness.nodes import wire") == [
        "nodes.wire"
    ]
    assert against_the_order("nodes", "import harness.launcher") == ["launcher"]
    assert beyond_the_interface("from harness import rank, adapter") == ["rank"]
