"""Training: steps of forward, loss, backward, all-reduce and optimizer.

On several ranks, the all-reduce of the gradients is timed alone, after everything that counts: the
timed region contains nothing but steps. Errors of this timing are recorded in a field of their own.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Sequence

from core.parallelism import DATA

from harness.adapter import Collectives, Unsupported
from harness.kind import AXES, Context, Workload
from harness.measuring.checks import check_same_weights, check_sharding, describe, note_sharding
from harness.measuring.steps import StepBenchmark

#: Largest share of the run's time so far that all rounds of all-reduces may take.
SHARE = 0.05
#: Number of rounds, each an all-reduce of all gradients, after a first one that compiles and
#: connects.
ROUNDS = 5


class Train(StepBenchmark):
    """Training: samples per second of training steps."""

    axes = AXES
    trains = True

    def measure(self, context: Context) -> None:
        super().measure(context)
        note_sharding(context)

    def afterwards(self, context: Context, seconds: float) -> None:
        """Store the field ``gradient_all_reduce``, with a reason in place of times on failure."""
        if context.rank_context.world_size == 1:
            return
        entry: Dict[str, Any] = {"reason": "the timing did not end", "bytes": [], "seconds": []}
        context.fields["gradient_all_reduce"] = entry
        context.report.succeed()  # the measurement counts even if a step below fails
        try:
            entry.update(time_all_reduce(context.adapter, seconds), reason="")
        except Exception as error:
            entry["reason"] = describe(error, context.adapter)["reason"]

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        check_same_weights(ranks)
        check_sharding(workload.case, ranks)


def time_all_reduce(adapter: Collectives, seconds: float) -> Dict[str, Any]:
    """Time all-reduces of messages in exactly the sizes of this run's gradients.

    Returns ``{"bytes": of each message, "seconds": of each round}``. All messages are enqueued
    before the last is waited for. There are one to ROUNDS rounds, the same number in all ranks.
    ``seconds``: duration of the run so far. Raises Unsupported where the framework does not report
    the sizes, or where gradients are not all-reduced."""
    parallelism = adapter.case.parallelism
    if parallelism != DATA:
        raise Unsupported(f"with {parallelism} there is no all-reduce of all gradients")
    messages = adapter.gradient_messages()
    run = adapter.gradient_all_reduce(messages)
    rounds: List[float] = []
    begin = time.perf_counter()
    while len(rounds) <= ROUNDS:
        adapter.all_reduce(0.0)  # a barrier, so that no timed all-reduce waits for a late rank
        adapter.synchronize()
        start = time.perf_counter()
        run()
        adapter.synchronize()
        rounds.append(time.perf_counter() - start)
        over = time.perf_counter() - begin > SHARE * seconds
        if adapter.all_reduce(float(over)) > 0 and len(rounds) > 1:
            break
    return {"bytes": messages, "seconds": rounds[1:]}
