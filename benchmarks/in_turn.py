"""Time loops in turn in one process, so that drift of the machine affects all alike.

:func:`measure` runs in frameworks' environments: Python 3.7 to 3.13.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]


def run_inside(python: str, program: str, arguments: Any) -> Any:
    """Run ``program --inside`` with ``arguments`` as JSON by another interpreter, and return the
    JSON of its last line. Raises CalledProcessError where it fails."""
    command = [python, program, "--inside", json.dumps(arguments)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def measure(loops: Mapping[str, Callable[[int], Any]], rounds: int, steps: int) -> dict[str, Any]:
    """Return the seconds of a step in each round, by loop name.
    Each loop runs the requested number of steps and waits for the last; a loop that times itself
    returns their total seconds. Two warm-up rounds are not counted. Every other round runs the
    loops in reverse order."""
    names = list(loops)
    results: dict[str, Any] = {name: [] for name in names}
    for number in range(-2, rounds):
        for name in names if number % 2 else names[::-1]:
            start = time.perf_counter()
            seconds = loops[name](steps) or time.perf_counter() - start
            if number >= 0:
                results[name].append(seconds / steps)
    return results


def ratio(seconds: list[float], other: list[float]) -> tuple[float, float, float]:
    """Return the median ratio of ``other`` to ``seconds`` over the rounds, and its 95 % interval.
    With few rounds, the range replaces the interval."""
    from framebench.statistics import descriptive, intervals

    ratios = [theirs / own for theirs, own in zip(other, seconds, strict=True)]
    low, high = intervals.median_interval(ratios) or (min(ratios), max(ratios))
    return descriptive.median(ratios), low, high
