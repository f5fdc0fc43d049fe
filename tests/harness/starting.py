"""Start of the programs that tests of the harness run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "harness" / "programs"


def start_program(
    name: str, *arguments: Any, env: Mapping[str, str] = os.environ, **options: Any
) -> subprocess.Popen[str]:
    """Start a program, which can import the harness and tests; its output is piped."""
    path = os.pathsep.join([str(ROOT / "scripts"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, PROGRAMS / f"{name}.py", *map(str, arguments)],
        env={**env, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
