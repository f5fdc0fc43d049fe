"""The core without the folder of features."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .made_up_records import write_records

ROOT = Path(__file__).parents[2]
#: Modules and folders of tests that run in seconds, out of each part of the core.
FAST = (
    *("test_imports.py", "test_bounded.py", "test_config.py", "test_documentation.py"),
    *("test_columns.py", "test_measured.py", "test_registry.py", "test_updating.py"),
    *("test_catalog.py", "test_tokens.py"),
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project without features and their tests."""
    copy = tmp_path_factory.mktemp("without") / "core"
    # With compiled modules, which stay valid.
    ignored = shutil.ignore_patterns("features", ".venv*", ".git", ".*cache")
    return Path(shutil.copytree(ROOT, copy, ignore=ignored))


def test_tests_of_the_core_pass_without_features(core: Path) -> None:
    """Fail if a test of the core cannot be imported without features, or a fast one fails."""
    options = ("-n0", "-q", "-p", "no:cacheprovider", "-k", " or ".join(FAST))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"],
        cwd=core, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-5000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None, ran.stdout[-2000:]
    assert int(passed[1]) > 300, "hardly a test has run"


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
