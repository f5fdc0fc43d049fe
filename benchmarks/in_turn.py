"""Timing of loops in turn in one process, so that machine drift affects them alike.

:func:`measure` runs in frameworks' environments: Python 3.7 to 3.13.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


def repeated(
    step: Callable[[], Any], steps: int, wait: Callable[[], Any] = lambda: None
) -> Callable[[], None]:
    """Return a loop that calls ``step`` ``steps`` times, then ``wait`` for the last one."""

    def run() -> None:
        for _ in range(steps):
            step()
        wait()

    return run


def measure(loops: Mapping[str, Callable[[], Any]], rounds: int, steps: int) -> dict[str, Any]:
    """Return the seconds of a step in each round, by loop name.
    Each loop runs ``steps`` steps, see :func:`repeated`. Two warm-up rounds are not counted. Every
    other round has the opposite order."""
    names = list(loops)
    results: dict[str, Any] = {name: [] for name in names}
    for number in range(-2, rounds):
        for name in names if number % 2 else names[::-1]:
            start = time.perf_counter()
            loops[name]()
            if number >= 0:
                results[name].append((time.perf_counter() - start) / steps)
    return results


def ratio(seconds: list[float], other: list[float]) -> tuple[float, float, float]:
    """Return the median ratio of ``other`` to ``seconds`` over the rounds, and its 95 % interval.
    With few rounds, the range replaces the interval."""
    from framebench.statistics import descriptive, intervals

    ratios = [theirs / own for theirs, own in zip(other, seconds, strict=True)]
    low, high = intervals.median_interval(ratios) or (min(ratios), max(ratios))
    return descriptive.median(ratios), low, high


def milliseconds(seconds: list[float]) -> str:
    """Return the median as text in ms."""
    from framebench.statistics import descriptive

    return f"{1000 * descriptive.median(seconds):8.1f} ms"
