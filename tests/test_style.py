"""The tree passes every tool of the project."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["snakefmt", "--check", "Snakefile", "workflow"],
        ["snakemake", "--lint"],
    ],
    ids=" ".join,
)
def test_clean(command: list[str]) -> None:
    ran = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_package_registry_or_home_in_tracked_files() -> None:
    """Fail if a tracked file names the machine it was written on, or a package registry."""
    patterns = [str(ROOT) + "/", str(Path.home()) + "/", "files.python" + "hosted"]
    options = [word for pattern in patterns for word in ("-e", pattern)]
    listed = subprocess.run(
        ["git", "grep", "-nIF", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
    )
    assert listed.returncode == 1, f"found: {listed.stdout}{listed.stderr}"


def test_a_class_name_is_used_once() -> None:
    """Fail if two classes share a name, except in frameworks' folders."""
    free = ROOT / "scripts" / "frameworks"
    places: dict[str, list[str]] = {}
    for folder in ("benchmarks", "scripts", "workflow"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.is_relative_to(free):
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ClassDef):
                        places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert not {name: place for name, place in places.items() if len(place) > 1}
