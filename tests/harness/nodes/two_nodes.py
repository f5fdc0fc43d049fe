"""Runs on two nodes, which are both this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ...bench import Bench, Finished

#: Command that starts the agents.
START = f"{sys.executable} {Path(__file__).parent / 'start_nodes.py'} {{nodes}}"
#: Options of a run on two devices of each of two nodes.
TWO_NODES: dict[str, Any] = {"nodes": 2, "devices_per_node": 2, "start_nodes": START}


def run_on_two_nodes(toy: Bench, behaviour: str = "", start: str = "", **options: Any) -> Finished:
    """Run on two nodes, and wait for the end.
    ``behaviour``: of the toy framework; ``start``: faults of START."""
    launcher = start_on_two_nodes(toy, behaviour, start, **options)
    return toy.finish(launcher)


def start_on_two_nodes(
    toy: Bench, behaviour: str = "", start: str = "", **options: Any
) -> subprocess.Popen[str]:
    """Start a run on two nodes, and return its launcher.
    ``behaviour``: of the toy framework; ``start``: faults of START."""
    os.environ["FRAMEBENCH_START"] = start
    try:
        return toy.start(behaviour, **{**TWO_NODES, **options})
    finally:
        del os.environ["FRAMEBENCH_START"]
