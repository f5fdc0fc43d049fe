"""The core without the folder of features."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .made_up_records import write_records

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project without features and their tests."""
    copy = tmp_path_factory.mktemp("without") / "core"
    # With compiled modules, which stay valid.
    ignored = shutil.ignore_patterns("features", ".venv*", ".git", ".*cache")
    return Path(shutil.copytree(ROOT, copy, ignore=ignored))


def framebench(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(core / "workflow" / "framebench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_report_is_made_without_features(core: Path, tmp_path: Path) -> None:
    records = write_records(tmp_path / "runs")
    ran = framebench(core, "report", "--records", str(records), "--results", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    made = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    assert "summary" in made
    assert (tmp_path / "report.html").is_file()


def test_command_of_an_absent_feature_is_refused(core: Path) -> None:
    ran = framebench(core, "gate")
    assert ran.returncode == 2
    assert "invalid choice: 'gate'" in ran.stderr
