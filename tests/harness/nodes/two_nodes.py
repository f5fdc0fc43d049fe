"""Runs on two nodes, which are both this machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from ...bench import Bench, Finished

#: Options of a run on two devices of each of two nodes.
TWO_NODES: dict[str, Any] = {"nodes": 2, "devices_per_node": 2}


def srun_on_path(folder: Path) -> str:
    """Return a search path on which ``srun`` is its double."""
    program = folder / "bin" / "srun"
    program.parent.mkdir(exist_ok=True)
    double = Path(__file__).with_name("srun.py")
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(double)])} "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def run_on_two_nodes(toy: Bench, behaviour: str = "", start: str = "", **options: Any) -> Finished:
    """Run on two nodes, and wait for the end.
    ``behaviour``: of the toy framework; ``start``: faults of the double."""
    launcher = start_on_two_nodes(toy, behaviour, start, **options)
    return toy.finish(launcher)


def start_on_two_nodes(
    toy: Bench, behaviour: str = "", start: str = "", **options: Any
) -> subprocess.Popen[str]:
    """Start a run on two nodes, and return its launcher.
    ``behaviour``: of the toy framework; ``start``: faults of the double."""
    variables = (f"PATH={srun_on_path(toy.folder)}", f"FRAMEBENCH_START={start}")
    return toy.start(behaviour, prefix=("env", *variables), **{**TWO_NODES, **options})
