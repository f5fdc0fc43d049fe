"""Train epochs, each followed by an evaluation, until the target is reached."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from harness.kind import Context
from harness.learning.checkpoints import Checkpoint
from harness.learning.evaluation import Learner
from harness.learning.rates import rate_at
from harness.learning.sources import TrainingData

#: Last steps of an epoch whose loss is reported separately, as many as NVIDIA's ELECTRA logs.
FINAL = 10


class Recipe(NamedTuple):
    """Training recipe.

    ``target``: of the principal ``score``, None without one. ``peak``: largest learning rate.
    ``warmup``: share of all steps in which it rises."""

    epochs: int
    score: str
    target: Optional[float]
    schedule: str
    peak: float
    warmup: float


def train(
    context: Context,
    source: TrainingData,
    recipe: Recipe,
    evaluate: Callable[[], Dict[str, float]],
    checkpoint: Optional[Checkpoint] = None,
) -> List[Dict[str, Any]]:
    """Train a built model; return an entry for each epoch, as in :mod:`harness.learning.curve`.

    Entries also go to ``fields["curve"]`` as they come. The loss of each step is read, which waits
    for it. All ranks stop together, when the first has reached the target, or one has a loss that
    is no number. ``checkpoint``: restored first, and saved after each epoch."""
    adapter, rank_context, clock = context.adapter, context.rank_context, time.perf_counter
    case = context.workload.case
    each = source.steps
    curve: List[Dict[str, Any]] = context.fields.setdefault("curve", [])
    if checkpoint:
        curve += checkpoint.load(adapter)
        context.fields["resumed_after"] = len(curve)
        if curve and _one_is_done(adapter, is_done(curve[-1], recipe, rank_context.rank)):
            return curve
    rate: Optional[float] = None
    start = context.fields["window_start"] = clock()
    for epoch in range(len(curve), recipe.epochs):
        context.report.enter(f"epoch {epoch + 1}")  # with the curve so far
        begin, losses = clock(), []
        for number, batch in enumerate(source.of_epoch(epoch)):
            step = epoch * each + number
            scheduled = rate_at(
                recipe.schedule, recipe.peak, recipe.warmup, step, recipe.epochs * each
            )
            if scheduled != rate:
                rate = scheduled
                adapter.set_learning_rate(rate)
            adapter.feed(batch)
            losses.append(adapter.read(adapter.step()))
        adapter.synchronize()
        trained = clock()
        held_out = evaluate()
        loss = mean(losses)
        curve.append(
            {
                "epoch": epoch + 1,
                "samples": each * case.samples_per_step,
                "train_seconds": trained - begin,
                "evaluation_seconds": clock() - trained,
                "loss": loss,
                "final_loss": mean(losses[-FINAL:]),
                "learning_rate": rate,
                "held_out": held_out,
            }
        )
        if checkpoint:
            checkpoint.save(adapter, curve)
        if _one_is_done(adapter, is_done(curve[-1], recipe, rank_context.rank)):
            break
    context.fields["window_seconds"] = clock() - start
    return curve


def mean(losses: Sequence[float]) -> float:
    """Return the mean; no number where one loss is none."""
    return math.fsum(losses) / len(losses) if all(map(math.isfinite, losses)) else math.nan


def is_done(epoch: Dict[str, Any], recipe: Recipe, rank: int) -> bool:
    """Return whether a rank wants to stop after ``epoch``.

    Only the first rank looks at the target, which is that of its running statistics."""
    target, score = recipe.target, epoch["held_out"][recipe.score]
    is_reached = rank == 0 and target is not None and score >= target
    return is_reached or not math.isfinite(epoch["loss"])


def _one_is_done(adapter: Learner, done: bool) -> bool:
    if adapter.rank_context.world_size == 1:
        return done
    return adapter.all_reduce(float(done)) > 0
