"""Run programs and return what they print."""

from __future__ import annotations

import subprocess
from typing import Any, Sequence


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end and return it with its output and errors, which are text whatever
    its bytes are. ``options``: of :func:`subprocess.run`, whose exceptions are raised."""
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", **options
    )
