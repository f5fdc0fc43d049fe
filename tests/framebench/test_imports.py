"""Allowed imports: the driver's packages in the order of the data, and modules without
libraries."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

WORKFLOW = Path(__file__).parents[2] / "workflow"
FRAMEBENCH = WORKFLOW / "framebench"

#: Packages in order: each imports only earlier ones. Records precede plans, because remaining runs
#: and their durations follow from measurements.
ORDER = (
    "files",
    "statistics",
    "machine",
    "config",
    "cases",
    "environments",
    "records",
    "plan",
    "runs",
    "tables",
    "comparison",
    "report",
    "terminal",
    "commands",
    "driver",
    "features",
)
#: Modules that run next to a benchmark, perhaps in a container with nothing but Python.
ALONE = ("runs.ensure_environment", "environments.uv")


def imports_of(path: Path) -> Iterator[str]:
    """Yield our modules that a module imports, as ``package.module``, also for types alone."""
    package = path.relative_to(FRAMEBENCH).parent
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        base = FRAMEBENCH / package
        for _ in range(node.level - 1):
            base = base.parent
        base = base.joinpath(*(node.module or "").split(".")) if node.module else base
        for alias in node.names:
            module = base / alias.name if base.is_dir() else base
            yield ".".join(module.relative_to(FRAMEBENCH).parts)


def modules() -> dict[str, set[str]]:
    """Return every module with its imports."""
    paths = [path for path in FRAMEBENCH.rglob("*.py") if path.name != "__init__.py"]
    return {
        ".".join(path.relative_to(FRAMEBENCH).with_suffix("").parts): set(imports_of(path))
        for path in paths
    }


def test_every_package_has_its_place_in_the_order() -> None:
    packages = {path.parent.name for path in FRAMEBENCH.glob("*/__init__.py")}
    assert packages | {"features"} == set(ORDER)


def test_imports_go_one_way() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in modules().items()
        for other in others
        if "." in module and "." in other
        if ORDER.index(other.partition(".")[0]) > ORDER.index(module.partition(".")[0])
    ]
    assert not wrong


def test_no_feature_imports_another() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in modules().items()
        for other in others
        if module.startswith("features.") and other.startswith("features.")
        if module.split(".")[1] != other.split(".")[1]
    ]
    assert not wrong


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(modules()).prepare()


@pytest.mark.parametrize("module", ALONE)
def test_what_runs_next_to_a_benchmark_needs_no_library(module: str) -> None:
    """Fail if such a module imports a library (-S hides site-packages).
    In a container it is run by any Python that the harness supports."""
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
    ("imported", "slow"),
    [
        ("driver", {"numpy", "pandas", "scipy", "jsonschema"}),  # a plan, and the look at what is
        ("report.html_report", {"scipy"}),
        ("tables.frames", {"matplotlib", "scipy"}),
    ],
)
def test_nothing_imports_what_only_others_need(imported: str, slow: set[str]) -> None:
    code = f"import sys, framebench.{imported}; print(*{slow} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=WORKFLOW, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
