"""The tree is clean by every tool that the project holds itself to."""

from __future__ import annotations

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
        ["snakefmt", "--check", "workflow"],
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
    """Nothing that ships names the machine that it was written on or where packages came from."""
    patterns = [str(ROOT) + "/", str(Path.home()) + "/", "files.python" + "hosted"]
    words = [word for pattern in patterns for word in ("-e", pattern)]
    listed = subprocess.run(
        ["git", "grep", "-nIF", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
    )
    assert listed.returncode == 1, f"found: {listed.stdout}{listed.stderr}"


def test_what_belongs_together_runs_in_one_process(request: pytest.FixtureRequest) -> None:
    """pytest-xdist knows a group by the end of a test's name, and says nothing where pytest no
    longer lets it write that: all that is built once for a group is then built in each process."""
    several = "PYTEST_XDIST_WORKER" in os.environ
    assert request.node.nodeid.endswith("@test_style.py") or not several
