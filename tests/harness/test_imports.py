"""One-way imports in the harness; adapters import only their interface."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from ..conftest import ROOT

SCRIPTS = ROOT / "scripts"

#: Packages and modules of the harness in order: each imports only earlier ones.
ORDER = [
    "VERSION",
    # interface of framework adapters
    "adapter",
    "optimizers",
    "operations",
    "communication",
    "sharded",
    "primitives",
    "loader",
    "batch_input",
    "common_capabilities",
    "variables",
    "try_imports",
    # machine, and needs of a run's processes
    "machine",
    "output",
    "messages",
    "samples",
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
    "provenance",
    "record",
    "nodes",
    "search",
    "launcher",
    "__main__",
]

#: Modules of the harness that an adapter may import.
OF_ADAPTERS = {
    *("adapter", "optimizers", "operations", "communication", "sharded", "primitives", "loader"),
    *("batch_input", "common_capabilities", "machine.interfaces", "processes.descendants"),
}

#: What the folders of ``scripts`` may import, besides themselves and the standard library.
ROOMS = {
    "core": {"numpy"},
    "networks": {"tensorflow"},
    "tasks": {"core", "numpy"},
    "harness": {
        *("core", "networks", "tasks", "numpy"),
        *("nvidia", "PIL", "pynvml", "scipy", "tensorflow"),  # of a framework's environment
    },
    "reference": {"autograd", "core", "harness", "networks", "numpy"},
}


def imported(source: str) -> Iterator[str]:
    """Yield the imports of ``source`` from the harness, without ``harness.``, at any level."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name[len("harness.") :] for name in names if name.startswith("harness."))


def against_the_order(module: str, source: str) -> list[str]:
    """Return the forbidden imports of ``module`` (its package, or its own name at the top)."""
    allowed = ORDER[: ORDER.index(module) + 1]
    return [name for name in imported(source) if name.split(".")[0] not in allowed]


def beyond_the_interface(source: str) -> list[str]:
    """Return the forbidden imports of an adapter."""
    return [
        name
        for name in imported(source)
        if not any(name == entry or name.startswith(f"{entry}.") for entry in OF_ADAPTERS)
    ]


def modules() -> list[Path]:
    return sorted(SCRIPTS.joinpath("harness").rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SCRIPTS).as_posix())
def test_imports_go_one_way(path: Path) -> None:
    module = path.relative_to(SCRIPTS / "harness").parts[0]
    if module != "__init__.py":
        assert against_the_order(module.removesuffix(".py"), path.read_text()) == []


def imports_within(source: str, known: Collection[str]) -> set[str]:
    """Return the ``known`` modules that ``source`` imports at any level; none is relative."""
    actual: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            actual.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            actual |= names & {*known} or {str(node.module)}
    return actual & {*known}


def test_no_module_imports_itself_by_way_of_others() -> None:
    paths = {
        ".".join(path.relative_to(SCRIPTS).with_suffix("").parts): path
        for room in ("core", "harness", "networks", "reference", "tasks")
        for path in SCRIPTS.joinpath(room).rglob("*.py")
        if path.name != "__init__.py"
    }
    graph = {name: imports_within(path.read_text(), paths) for name, path in paths.items()}
    assert graph["core.case"], "no import was seen"
    TopologicalSorter(graph).prepare()


def test_adapters_import_their_interface_alone() -> None:
    adapters = {
        path.relative_to(SCRIPTS).as_posix(): beyond_the_interface(path.read_text())
        for path in sorted(SCRIPTS.joinpath("frameworks").rglob("*.py"))
    }
    assert adapters, "no adapter was looked at"
    assert {name: wrong for name, wrong in adapters.items() if wrong} == {}


def libraries(source: str) -> set[str]:
    """Return the packages that ``source`` imports from outside its own package and Python."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
    return names - sys.stdlib_module_names


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_they_may(room: str) -> None:
    actual = {
        path.name: libraries(path.read_text()) for path in SCRIPTS.joinpath(room).rglob("*.py")
    }
    allowed = {room, *ROOMS[room]}
    assert {name: wrong for name, entry in actual.items() if (wrong := entry - allowed)} == {}


def test_the_driver_imports_declarations_of_the_harness_alone() -> None:
    declarations = (
        *("kind", "kinds", "request.own_model", "learning.amounts", "samples.folder"),
        *("machine.cores", "machine.sources"),
    )
    modules = ROOT.glob("workflow/framebench/**/*.py")
    names = {name for path in modules for name in imported(path.read_text())}
    assert [name for name in names if not name.startswith(declarations)] == []
