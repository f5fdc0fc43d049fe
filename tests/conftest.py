"""What tests share: paths, and the frameworks' environments, built as the workflow builds them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "workflow"))


def build_environment(framework: str) -> str:
    """The interpreter of ``envs/FRAMEWORK.yaml``, in the folder where the workflow looks for it,
    so that it is built once for all tests and for ``snakemake`` itself."""
    from framebench.environments import read_environment_file

    file = read_environment_file(ROOT / "envs" / f"{framework}.yaml")
    marker = ROOT / file.marker
    if not marker.exists():
        command = [sys.executable, str(ROOT / "workflow" / "framebench"), "environment"]
        subprocess.run([*command, "--file", str(file.path), "--marker", str(marker)], check=True)
    return str(marker.parent / "bin" / "python")


@pytest.fixture(scope="session")
def pytorch_python() -> str:
    return build_environment("pytorch")


@pytest.fixture(scope="session")
def tensorflow_python() -> str:
    return build_environment("tensorflow")
