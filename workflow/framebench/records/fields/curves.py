"""Learning curve of a run, by epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

#: Benchmark that trains to a target.
KIND = "converge"
#: Value of the parameter ``target`` if a run has none.
NO_TARGET = "none"
#: Name of the loss, which every task has besides its scores.
LOSS = "loss"


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Learning curve of a training, converged or not; None stands for values that are not numbers.

    ``score``: name of the task's principal score; ``scores``: its values by epoch; ``losses``:
    losses of training; ``seconds``: seconds of all steps including input, until the end of each
    epoch; ``target``: None without one; ``samples``: samples of the held-out set; ``seed``: seed of
    weights and order; ``others``: other scores after the last epoch, by name; ``resumed_after``:
    epochs trained by an earlier, killed process; ``before``: score before training.
    """

    task: str
    score: str
    target: float | None
    scores: tuple[float | None, ...]
    losses: tuple[float | None, ...]
    seconds: tuple[float, ...]
    samples: int
    seed: int
    others: tuple[tuple[str, float | None], ...] = ()
    resumed_after: int = 0
    before: float | None = None

    @property
    def last(self) -> float | None:
        """Score after the last epoch."""
        return self.scores[-1] if self.scores else None


def curve_of(record: Mapping[str, Any]) -> LearningCurve | None:
    """Return the learning curve of a record's first rank, whose running statistics are scored.

    Returns None for a record without one. Raises ValueError for a curve without a score.
    """
    ranks = record["ranks"]
    if record["kind"] != KIND or not ranks or not ranks[0].get("curve"):
        return None
    epochs, task = ranks[0]["curve"], ranks[0].get("task", {})
    target = record["parameters"].get("target", NO_TARGET)
    score = next((name for name in epochs[0]["held_out"] if name != LOSS), "")
    if not score or not (target == NO_TARGET or isinstance(target, (int, float))):
        raise ValueError("has a curve without a score, or a target that is not a number")
    return LearningCurve(
        task=str(task.get("name", "")),
        score=score,
        target=None if target == NO_TARGET else float(target),
        scores=tuple(epoch["held_out"].get(score) for epoch in epochs),
        losses=tuple(epoch["loss"] for epoch in epochs),
        seconds=tuple(accumulate(float(epoch["train_seconds"]) for epoch in epochs)),
        samples=int(task.get("held_out", 0)),
        seed=int(record["settings"]["seed"]),
        others=tuple((n, v) for n, v in epochs[-1]["held_out"].items() if n not in (LOSS, score)),
        resumed_after=int(ranks[0].get("resumed_after") or 0),
        before=ranks[0].get("untrained", {}).get(score),
    )
