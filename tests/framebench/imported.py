"""Packages of the driver that a module imports, also by way of others."""

from __future__ import annotations

import subprocess
import sys

from ..conftest import ROOT


def packages_behind(module: str) -> set[str]:
    """Return the packages that ``module`` of the driver imports, as paths below ``framebench``."""
    code = f"import sys, framebench.{module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [name.split(".")[1:] for name in done.stdout.split() if name.startswith("framebench.")]
    return {
        "/".join(path[:depth])
        for path in paths
        if len(path) > (depth := 2 if path[0] == "features" else 1)
    }
