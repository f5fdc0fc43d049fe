"""Runs of tests in a copy of the project in which a claim was violated."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ..conftest import ROOT
from ..planting import change
from .claim import Violation

#: Folders that no test of the register needs, or that are linked instead.
_CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".snakemake")
_LEFT_OUT = frozenset({".git", ".venv", ".venvs", "site", *_CACHES})
#: Start of the line of a failed test in pytest's summary.
_FAILED = "FAILED "


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return the names in ``folder`` that are not copied: of results, all but published ones."""
    others = set(names) - {"published"} if Path(folder).name == "results" else set()
    return others | _LEFT_OUT.intersection(names)


def copy_project(folder: Path, source: Path = ROOT) -> Path:
    """Copy the project to the new ``folder``, with compiled bytecode and without environments."""
    shutil.copytree(source, folder, ignore=_left_out, symlinks=True)
    environments = ROOT / ".venvs"
    if environments.exists():
        (folder / ".venvs").symlink_to(environments.resolve())
    return folder


def run_tests(folder: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run ``tests``, given by node ids, in the copy ``folder`` of the project."""
    options = ["-n", "0", "-q", "-rf", "--tb=line", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def missed(violation: Violation, folder: Path, source: Path = ROOT) -> list[str]:
    """Return the tests of ``violation`` that pass although it is planted in a copy of the project
    ``source``, or that could not be run. ``folder``: of the copy, removed afterwards."""
    try:
        copy_project(folder, source)
        change(folder, violation.changes)
        for file in {file for file, _, _ in violation.changes if file.endswith(".py")}:
            compile((folder / file).read_text(), file, "exec")  # a typing error violates nothing
        lines = run_tests(folder, violation.tests).stdout.splitlines()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed = [line.removeprefix(_FAILED) for line in lines if line.startswith(_FAILED)]
    return [test for test in violation.tests if not any(_is_of(text, test) for text in failed)]


def _is_of(line: str, test: str) -> bool:
    """Return whether a line is of ``test``, or of ``test`` with some parameters."""
    return line == test or line.startswith((f"{test}[", f"{test} - "))
