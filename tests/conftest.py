"""What tests share: paths, and the frameworks' environments, built as the workflow builds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "workflow"))


def build_environment(framework: str) -> str:
    """The interpreter of ``envs/FRAMEWORK.yaml``, in the folder where the workflow looks for it,
    so that it is built once for all tests and for ``snakemake`` itself."""
    from framebench.matrix import environment_digest

    file = ROOT / "envs" / f"{framework}.yaml"
    marker = ROOT / ".venvs" / f"{framework}-{environment_digest(file)}" / "environment.json"
    if not marker.exists():
        command = [sys.executable, str(ROOT / "workflow" / "framebench"), "environment"]
        subprocess.run([*command, "--file", str(file), "--marker", str(marker)], check=True)
    return str(marker.parent / "bin" / "python")


@pytest.fixture(scope="session")
def pytorch_python() -> str:
    return build_environment("pytorch")


@pytest.fixture(scope="session")
def tensorflow_python() -> str:
    return build_environment("tensorflow")


def install_debian_packages(*names: str) -> str:
    """Install Debian packages where that is possible; else the sentence that says how."""
    how = f"apt-get install {' '.join(names)}"
    if os.geteuid() != 0:
        return f"Debian packages are missing: run (as root) {how}"
    subprocess.run(["apt-get", "update", "-q"], check=False, capture_output=True)
    ran = subprocess.run(
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *names],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
    return "" if ran.returncode == 0 else f"{how} failed: {ran.stderr[-500:]}"
