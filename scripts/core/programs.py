"""Run programs and return what they print."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Sequence

from . import surroundings


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end and return it with its output and errors, which are text whatever
    its bytes are. ``options``: options of :func:`subprocess.run`, whose exceptions are raised. It
    has the caller's loader, which may be the only way to its libraries."""
    options.setdefault("env", {**os.environ, **dict(surroundings.for_loader(os.environ))})
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", **options
    )
