"""Commands of Framebench, run as a user runs them."""

from __future__ import annotations

import subprocess
import sys

from .conftest import ROOT

PROGRAM = ROOT / "workflow" / "framebench"


def framebench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a sub-command of ``framebench`` and return its exit status and output."""
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
