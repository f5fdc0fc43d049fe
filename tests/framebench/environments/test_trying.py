"""Imports of an environment are tried before anything is measured in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from framebench.environments import soundness


def install(folder: Path) -> None:
    """Install two packages into a venv, one of which cannot be imported."""
    (site,) = folder.glob("lib/python*/site-packages")
    for name, module, text in (
        ("good_one-1.0", "good", "print('hello')"),
        ("bad_one-2.0", "bad", "import nosuchthing"),
        ("unasked-3.0", "unasked", "raise ValueError"),
        ("driver-1.0", "driver", "raise ImportError('libcuda.so.1: cannot open')"),
    ):
        (site / f"{module}.py").write_text(text + "\n")
        (site / f"{name}.dist-info").mkdir()
        (site / f"{name}.dist-info" / "top_level.txt").write_text(f"{module}\n_private\ntests\n")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    install(folder)
    return folder


def test_what_cannot_be_imported_is_named_with_its_reason(venv: Path) -> None:
    assert soundness.import_fault(venv, ["good-one", "driver"]) == ""
    fault = soundness.import_fault(venv, ["good-one", "bad-one"])
    assert fault == "import bad: ModuleNotFoundError: No module named 'nosuchthing'"
