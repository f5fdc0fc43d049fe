"""How many steps are waited for one by one, behind the window that gives the throughput.

The time of a step and its percentiles are those of steps that have the device for themselves. In
the window of the throughput the next step is under way already, so they need steps of their own,
wherever a step returns before it is complete. A window as long as the first would give as many, at
the price of a run half as long again; this one takes at most SHARE of a run. So a percentile that
needs many steps (64 for p90, 662 for p99) takes more steps in the first window than here, by what a
run's import, build and warm-up leave; where a step returns complete, the first window serves both.
"""

from __future__ import annotations

from harness.adapter import Adapter
from harness.measuring.window import Window

#: Of a run's time, from the import of the framework to the last of these steps.
SHARE = 0.15


def affordable(steps: int, step_seconds: float, elapsed: float) -> int:
    """As many steps of ``step_seconds`` as take at most SHARE of ``elapsed`` seconds and them
    together: at least one, and no more than the ``steps`` of the first window."""
    most = SHARE / (1 - SHARE) * elapsed
    return max(1, min(steps, int(most / step_seconds))) if step_seconds else steps


def count_synchronous_steps(adapter: Adapter, window: Window, elapsed: float) -> int:
    """How many steps follow ``window``, ``elapsed`` seconds after the run began; the same in all
    ranks, because they exchange gradients in each."""
    steps = len(window.step_seconds)
    count = affordable(steps, window.seconds / steps, elapsed)
    ranks = adapter.rank_context.world_size
    return max(1, int(adapter.all_reduce(float(count)) / ranks)) if ranks > 1 else count
