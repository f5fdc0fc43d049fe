"""Choose how many steps are timed one by one after the timed region.

Step time and its percentiles need steps that have the device to themselves. In the timed region the
next step is already enqueued, wherever a step returns before it completes. As many steps again
would make a run half as long again, so these take at most SHARE of a run. A percentile that needs
many steps (64 for p90, 662 for p99) therefore needs a longer timed region. Where steps return
complete, the timed region serves both.
"""

from __future__ import annotations

from harness.adapter import Adapter
from harness.measuring.window import Window

#: Largest part of a run, from the import of the framework to the last of these steps.
SHARE = 0.15


def affordable(steps: int, step_seconds: float, elapsed: float) -> int:
    """Return how many steps of ``step_seconds`` fit in SHARE of the run, including ``elapsed``
    seconds.

    The result is at least one and at most ``steps``, the number in the timed region."""
    most = SHARE / (1 - SHARE) * elapsed
    return max(1, min(steps, int(most / step_seconds))) if step_seconds else steps


def count_synchronous_steps(adapter: Adapter, window: Window, elapsed: float) -> int:
    """Return how many steps follow ``window``, ``elapsed`` seconds after the run began.

    All ranks get the same number, because they all-reduce gradients in each step."""
    steps = len(window.step_seconds)
    count = affordable(steps, window.seconds / steps, elapsed)
    ranks = adapter.rank_context.world_size
    return max(1, int(adapter.all_reduce(float(count)) / ranks)) if ranks > 1 else count
