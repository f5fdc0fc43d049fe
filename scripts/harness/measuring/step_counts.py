"""Choose the numbers of warm-up steps, timed steps, and steps that are timed one by one
afterwards."""

from __future__ import annotations

import math
from statistics import median
from typing import List, Optional, Sequence

from harness.adapter import Adapter

#: Least number of warm-up steps that show whether the step time has settled.
FEWEST = 10
#: Largest difference, relative to the step time, at which the step time counts as settled.
TOLERANCE = 0.02
#: Least seconds of a warm-up to settle on a GPU, whose clocks change within seconds under load.
GPU_SECONDS = 3.0
#: Most steps that are added to fill the seconds of a timed region.
MOST_TIMED = 10000
#: Largest share of a run, from the import of the framework to the last step, that steps timed one
#: by one may take.
SHARE = 0.15


def is_settled(seconds: Sequence[float]) -> bool:
    """Return whether the last quarter of the steps takes as long as the quarter before.

    Each quarter has at least five steps. Their medians may differ by TOLERANCE, or by noise: the
    standard error of a difference of medians, from the median absolute deviation (0.67 standard
    deviations of normal noise; a median's standard error is 1.25 s / sqrt(n)). Medians ignore
    single stalls and late compilations; quarters show slow changes. A slow drift within the noise
    passes, but the timed region is judged by itself, with more steps."""
    if len(seconds) < FEWEST:
        return False
    count = max(FEWEST // 2, len(seconds) // 4)
    last, before = seconds[-count:], seconds[-2 * count : -count]
    middles = median(last), median(before)
    apart = [abs(s - m) for part, m in zip((last, before), middles) for s in part]
    noise: float = 1.25 * (median(apart) / 0.6745) * (2 / count) ** 0.5
    return abs(middles[0] - middles[1]) <= max(TOLERANCE * middles[0], noise)


def settled_after(seconds: List[float]) -> Optional[int]:
    """Return the number of steps after which the step time had first settled, or None."""
    counts = range(FEWEST, len(seconds) + 1)
    return next((count for count in counts if is_settled(seconds[:count])), None)


def all_settled(adapter: Adapter, seconds: List[float], is_last: bool) -> bool:
    """Return whether the step time has settled in all ranks, which must stop warming up together.
    Unless the step ``is_last``, a GPU must have computed for GPU_SECONDS, too."""
    ranks, is_cold = adapter.rank_context.world_size, False
    if adapter.rank_context.accelerator == "cuda" and not is_last:
        # compilation within a step does not load the GPU
        is_cold = median(seconds) * len(seconds) < GPU_SECONDS
    settled = is_settled(seconds) and not is_cold
    return settled if ranks == 1 else adapter.all_reduce(float(settled)) == ranks


def timed_steps(
    adapter: Adapter, fewest: int, seconds: Optional[int], warmup: Sequence[float]
) -> int:
    """Return the steps of the timed region, the same in all ranks that work together.

    ``fewest``: least number of steps; the result where ``seconds`` is None. ``warmup``: seconds of
    the warm-up steps; the last half of them shows how long a step takes."""
    if seconds is None:
        return fewest
    typical = median(warmup[len(warmup) // 2 :])
    ranks = adapter.rank_context.world_size
    if ranks > 1:
        typical = adapter.all_reduce(typical) / ranks
    return max(fewest, min(MOST_TIMED, math.ceil(seconds / max(typical, 1e-6))))


def affordable(steps: int, step_seconds: float, elapsed: float) -> int:
    """Return how many steps of ``step_seconds`` fit in SHARE of the run, including ``elapsed``
    seconds.

    The result is at least one and at most ``steps``, the number in the timed region."""
    most = SHARE / (1 - SHARE) * elapsed
    return max(1, min(steps, int(most / step_seconds))) if step_seconds else steps


def synchronous_steps(adapter: Adapter, steps: int, seconds: float, elapsed: float) -> int:
    """Return how many steps are timed one by one after a timed region of ``steps`` in ``seconds``,
    which ended ``elapsed`` seconds after the run began.

    Step time and its percentiles need steps that have the device to themselves. In the timed region
    the next step is already enqueued, wherever a step returns before it completes. As many steps
    again would make a run half as long again. A percentile that needs many steps (64 for p90, 662
    for p99) therefore needs a longer timed region. All ranks get the same number, because they
    all-reduce gradients in each step."""
    count = affordable(steps, seconds / steps, elapsed)
    ranks = adapter.rank_context.world_size
    return max(1, int(adapter.all_reduce(float(count)) / ranks)) if ranks > 1 else count
