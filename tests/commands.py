"""Commands as users run them, and rows of the CSV files that they write."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT

PROGRAM = ROOT / "workflow" / "framebench"


def framebench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a sub-command of ``framebench`` and return its exit status and output."""
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def git(folder: Path, *arguments: str) -> str:
    """Run git with a fixed identity on the repository in ``folder``, whatever variables are set."""
    options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *options, *arguments]
    return subprocess.run(
        command, cwd=folder, env=clean, check=True, capture_output=True, text=True
    ).stdout


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as texts by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
