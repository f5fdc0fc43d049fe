"""Evaluate a model on held-out data."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from tasks import Arrays, Scored, means

from harness.adapter import Numerics
from harness.batch_input import BatchInput

#: Function from outputs and their batch to scores and loss of each sample, by name.
Score = Callable[[Sequence[Any], Arrays], Scored]
#: Function that yields held-out batches of one size, each with the number of samples that count.
HeldOut = Callable[[], Iterator[Tuple[Arrays, int]]]
#: Function from the scored values of all samples to scores and loss.
Total = Callable[[Scored], Dict[str, float]]


class Learner(BatchInput, Numerics):
    """Adapter that can be trained and evaluated."""


class Evaluator:
    """Second model of the same framework in the same process, built for inference.

    It has running statistics and no dropout. Before each evaluation it gets the weights and
    statistics of the trained model, by the names that all frameworks share."""

    def __init__(
        self, trained: Learner, score: Score, first: Arrays, held_out: HeldOut, total: Total = means
    ) -> None:
        """Build the model. ``trained``: started, but not built yet; ``first``: a batch of at least
        the case's samples.

        Building this model draws random numbers; building the trained one seeds them anew."""
        self._trained, self._score, self._held_out, self._total = trained, score, held_out, total
        self._model = trained.inference_adapter()
        batch = trained.case.batch_per_device
        self._model.build({name: array[:batch] for name, array in first.items()})

    def scores(self, weights: Optional[Dict[str, Any]] = None) -> Dict[str, float]:
        """Return each score over all samples, and the loss.

        ``weights``: with running statistics; by default those of the trained model."""
        import numpy as np

        trained = self._trained
        self._model.load_weights(weights or {**trained.weights(), **trained.statistics()})
        scored: Dict[str, List[Any]] = {}
        for batch, count in self._held_out():
            self._model.feed(batch)
            for name, values in self._score(self._model.outputs(), batch).items():
                scored.setdefault(name, []).append(values[:count])
        return self._total({name: np.concatenate(parts) for name, parts in scored.items()})


def total_of_ranks(
    adapter: Learner, of_sums: Callable[[Dict[str, float], float], Dict[str, float]]
) -> Total:
    """Return a function that adds up what each rank has scored of its part of the samples.

    ``of_sums``: function from the sums of all scored values and the number of samples to the
    scores. Each rank has its own running statistics."""

    def total(scored: Scored) -> Dict[str, float]:
        samples = adapter.all_reduce(float(len(next(iter(scored.values())))))
        sums = {name: adapter.all_reduce(float(values.sum())) for name, values in scored.items()}
        return of_sums(sums, samples)

    return total
