"""Allowed imports: one way, adapters by their interface alone, and modules without libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker

from .conftest import ROOT

SCRIPTS, WORKFLOW = ROOT / "scripts", ROOT / "workflow"

#: Parts of the harness and packages of the driver in order: each imports only earlier ones.
ORDERS = {
    "harness": (
        *("VERSION",),
        # interface of framework adapters
        *("adapter", "optimizers", "operations", "primitives", "capabilities", "loader"),
        *("variables", "try_imports"),
        # machine, and needs of a run's processes
        *("hardware", "cores", "sensors", "nvml", "output", "report", "samples", "processes"),
        *("watcher",),
        # one rank
        *("kind", "measuring", "learning", "kinds", "rank", "start_rank"),
        # a run, from the command line to its record
        *("own_model", "declaration", "command_line", "provenance", "record", "node", "nodes"),
        *("launcher", "__main__"),
    ),
    # Records precede plans, because remaining runs and their durations follow from measurements.
    "framebench": (
        *("files", "statistics", "machine", "config", "cases", "environments", "records"),
        *("plan", "runs", "tables", "comparison", "report", "terminal", "cli", "driver"),
        *("features",),
    ),
}
#: Modules of the harness that an adapter may import.
OF_ADAPTERS = (
    *("adapter", "optimizers", "operations", "primitives", "capabilities", "loader"),
    *("hardware.interface_with", "processes.descendants.signal_when_parent_dies"),
)
#: Declarations of the harness that the driver may import.
OF_DRIVER = (
    *("kind", "kinds", "own_model", "learning.amounts", "samples.folder"),
    *("hardware.file_entry", "hardware.siblings"),
)
#: What the folders of ``scripts`` may import, besides themselves and the standard library.
ROOMS = {
    "core": {"numpy"},
    "networks": {"tensorflow"},
    "tasks": {"core", "numpy"},
    "harness": {
        *("core", "networks", "tasks", "numpy"),
        *("nvidia", "PIL", "pynvml", "scipy", "tensorflow"),  # packages of frameworks' environments
    },
    "reference": {"autograd", "core", "harness", "networks", "numpy"},
}
#: Modules that run next to a benchmark, perhaps in a container with nothing but Python.
ALONE = ("environments.building", "environments.uv")


def imported(path: Path) -> set[str]:
    """Return what a module imports, also for types alone: ``PACKAGE.MODULE`` or ``.NAME`` in it."""
    above = (SCRIPTS if path.is_relative_to(SCRIPTS) else WORKFLOW).parts
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = path.parts[len(above) : -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


@cache
def imports(*rooms: str) -> dict[str, set[str]]:
    """Return the modules in folders of ``scripts`` and ``workflow`` with what they import."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): imported(path)
        for root in (SCRIPTS, WORKFLOW)
        for room in rooms
        for path in root.joinpath(room).rglob("*.py")
    }


def lying_in(names: set[str], room: str, parts: Iterable[str]) -> set[str]:
    """Return the ``names`` that lie in one of these parts of a folder."""
    places = [f"{room}.{part}." for part in parts]
    return {name for name in names if any(f"{name}.".startswith(place) for place in places)}


@pytest.mark.parametrize("room", ORDERS)
def test_imports_go_one_way(room: str) -> None:
    order, modules = ORDERS[room], imports(room)
    parts = {  # except top-level modules of the driver that have no place
        module: part
        for module in modules
        for part in [module.split(".")[1]]
        if room == "harness" or part in order or module.count(".") > 1
        if module != f"{room}.__init__"
    }
    assert {*parts.values()} | {"VERSION"} == {*order} | {"VERSION"}, "each has its place"
    wrong = {
        module: later
        for module, part in parts.items()
        if (later := lying_in(modules[module], room, order[order.index(part) + 1 :]))
    }
    assert wrong == {}


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = imports("core", "harness", "networks", "reference", "tasks", "framebench")
    graph = {
        module: {name if name in modules else name.rpartition(".")[0] for name in names}
        & {*modules} - {module}
        for module, names in modules.items()
    }
    assert graph["core.case"], "no import was seen"
    assert graph["framebench.tables.frames"], "no import was seen"
    TopologicalSorter(graph).prepare()


def test_a_run_loads_few_modules() -> None:
    """Fail if launcher and rank of a training of ResNet-50 in PyTorch import more than 120."""
    modules = imports("core", "harness", "networks", "frameworks", "tasks")
    begun = ["harness.launcher", "harness.rank", "harness.kinds.train"]
    begun += ["frameworks.pytorch.adapter", "frameworks.pytorch.models.cnn"]
    loaded = set[str]()
    while begun:
        loaded.add(module := begun.pop())
        named = {part for name in modules[module] for part in (name, name.rpartition(".")[0])}
        begun += (named & {*modules}) - loaded
    assert 50 < len(loaded) <= 120


@pytest.mark.parametrize(
    ("room", "allowed"), [("frameworks", OF_ADAPTERS), ("framebench", OF_DRIVER)]
)
def test_others_import_what_of_the_harness_is_for_them(room: str, allowed: tuple[str, ...]) -> None:
    wrong = {}
    for module, names in imports(room).items():
        of_harness = {name for name in names if name.startswith("harness.")}
        wrong[module] = of_harness - lying_in(of_harness, "harness", allowed)
    assert wrong, "nothing was looked at"
    assert {module: names for module, names in wrong.items() if names} == {}


def test_no_feature_imports_another() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, names in imports("framebench").items()
        for name in names
        if module.startswith("framebench.features.") and name.startswith("framebench.features.")
        if module.split(".")[2] != name.split(".")[2]
    ]
    assert not wrong


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_they_may(room: str) -> None:
    allowed = {room, *ROOMS[room], *sys.stdlib_module_names}
    actual = {
        module: {name.partition(".")[0] for name in names} - allowed
        for module, names in imports(room).items()
    }
    assert {module: wrong for module, wrong in actual.items() if wrong} == {}


@pytest.mark.parametrize("module", ALONE)
def test_what_runs_next_to_a_benchmark_needs_no_library(module: str) -> None:
    """In a container it is run by any Python that the harness supports (-S hides site-packages)."""
    code = (
        f"import sys; sys.path.insert(0, {str(WORKFLOW)!r}); import framebench.{module}\n"
        "ours = [one for name, one in sys.modules.items() if name.split('.')[0] == 'framebench']\n"
        "print(*(one.__file__ for one in ours))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True
    )
    for path in ran.stdout.split():
        ast.parse(Path(path).read_text(encoding="utf-8"), path, feature_version=(3, 7))


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        # a plan, and a check of existing files
        ("driver", {"numpy", "pandas", "scipy", "jsonschema"}),
        ("report.html_report", {"scipy"}),
        ("tables.frames", {"matplotlib", "scipy"}),
    ],
)
def test_nothing_imports_what_only_others_need(module: str, slow: set[str]) -> None:
    code = f"import sys, framebench.{module}; print(*{slow} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=WORKFLOW, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


#: Python of the environment in which tables are made by ``--sdm conda``.
PYTHON = {"python_full_version": "3.11.0", "python_version": "3.11"}


def test_the_environment_of_tables_has_the_drivers_packages() -> None:
    lines = re.findall(
        r"^([\w.-]+)==(\S+) *(?:; (.*?))? \\$", (ROOT / "requirements.txt").read_text(), re.M
    )
    locked = {n: version for n, version, mark in lines if not mark or Marker(mark).evaluate(PYTHON)}
    file = yaml.safe_load((ROOT / "workflow" / "envs" / "driver.yaml").read_text())
    *_, pip = file["dependencies"]
    pinned = dict(entry.split("==") for entry in pip["pip"])
    assert {name: locked.get(name) for name in pinned} == pinned
    lines = (ROOT / "requirements.in").read_text().splitlines()
    direct = {re.split(r"[\[= ]", line)[0] for line in lines if line and not line.startswith("#")}
    of_snakemake = {name for name in direct if name.startswith("snakemake")}
    # except packages of Snakemake's process
    needed = direct - of_snakemake - {"uv", "setuptools", "psutil"}
    assert needed <= set(pinned), "the driver needs more than it declares"
