"""What a run learned, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The kind of measurement that trains until something is learned.
KIND = "converge"
#: Of a run without a target.
NO_TARGET = "none"
#: What every task has beside its scores.
LOSS = "loss"


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """A training, whether it converged or not. ``score``: the principal one of its task, which
    ``scores`` has by epoch; ``losses`` are of training, ``held_out_losses`` of what was held out;
    None for what is no number. ``seconds``: of all steps with their feeding, until the end of each
    epoch. ``target`` is None where there was none. ``samples``: that are held out; ``seed``: of
    weights and order; ``others``: names of its other scores, and what each was behind the last
    epoch; ``resumed_after``: epochs that another process had trained, which was killed; ``before``:
    the score of the weights that it started from, before training."""

    task: str
    score: str
    target: float | None
    scores: tuple[float | None, ...]
    losses: tuple[float | None, ...]
    held_out_losses: tuple[float | None, ...]
    seconds: tuple[float, ...]
    samples: int
    seed: int
    others: tuple[tuple[str, float | None], ...] = ()
    resumed_after: int = 0
    before: float | None = None

    @property
    def last(self) -> float | None:
        """The score behind the last epoch."""
        return self.scores[-1] if self.scores else None

    @property
    def best(self) -> float | None:
        """The highest score of an epoch."""
        return max((score for score in self.scores if score is not None), default=None)


def curve_of(record: Mapping[str, Any]) -> LearningCurve | None:
    """Of a record's first rank, whose running statistics are scored; None where there is none.
    Raises ValueError where it is none of ours."""
    ranks = record["ranks"]
    if record["kind"] != KIND or not ranks or not ranks[0].get("curve"):
        return None
    epochs, task = ranks[0]["curve"], ranks[0].get("task", {})
    target = record["parameters"].get("target", NO_TARGET)
    score = next((name for name in epochs[0]["held_out"] if name != LOSS), "")
    if not score or not (target == NO_TARGET or isinstance(target, (int, float))):
        raise ValueError("has a curve without a score, or a target that is no number")
    return LearningCurve(
        task=str(task.get("name", "")),
        score=score,
        target=None if target == NO_TARGET else float(target),
        scores=tuple(epoch["held_out"].get(score) for epoch in epochs),
        losses=tuple(epoch["loss"] for epoch in epochs),
        held_out_losses=tuple(epoch["held_out"].get(LOSS) for epoch in epochs),
        seconds=_running([epoch["train_seconds"] for epoch in epochs]),
        samples=int(task.get("held_out", 0)),
        seed=int(record["settings"]["seed"]),
        others=tuple((n, v) for n, v in epochs[-1]["held_out"].items() if n not in (LOSS, score)),
        resumed_after=int(ranks[0].get("resumed_after") or 0),
        before=ranks[0].get("untrained", {}).get(score),
    )


def _running(seconds: Sequence[float]) -> tuple[float, ...]:
    total, sums = 0.0, []
    for one in seconds:
        total += one
        sums.append(total)
    return tuple(sums)
