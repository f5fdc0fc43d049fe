"""Evaluate a model on held-out data."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from tasks import Scored, means

from harness.adapter import Numerics
from harness.batch_input import LearningRateSchedule
from harness.learning import batches

#: Function from outputs and their batch to scores and loss of each sample, by name.
Score = Callable[[Sequence[Any], Dict[str, Any]], Dict[str, Any]]


class Learner(LearningRateSchedule, Numerics):
    """Adapter that can be trained and evaluated."""


class Evaluator:
    """Second model of the same framework in the same process, built for inference.

    It has running statistics and no dropout. Before each evaluation it gets the weights and
    statistics of the trained model, by the names that all frameworks share."""

    def __init__(
        self,
        trained: Learner,
        score: Score,
        held_out: Dict[str, Any],
        total: Callable[[Scored], Dict[str, float]] = means,
    ) -> None:
        """Build the model. ``trained``: started, but not built yet.

        Building this model draws random numbers; building the trained one seeds them anew.
        ``total``: reduces the samples' scores to their totals."""
        self._trained, self._score, self._arrays = trained, score, held_out
        self.total = total
        self._model = trained.inference_adapter()
        self._batch = trained.case.batch_per_device
        first, _ = next(batches.evaluation_batches(held_out, self._batch))
        self._model.build(first)

    def scores(self) -> Dict[str, float]:
        """Return each score over all samples, and the loss, with the weights of the trained
        model."""
        self.load({**self._trained.weights(), **self._trained.statistics()})
        return self.scores_as_loaded()

    def load(self, weights: Dict[str, Any]) -> None:
        """Load weights and running statistics of any framework."""
        self._model.load_weights(weights)

    def scores_as_loaded(self) -> Dict[str, float]:
        """Return the scores with the weights loaded last."""
        import numpy as np

        batches: Dict[str, List[Any]] = {}
        for batch, count in self.held_out():
            self._model.feed(batch)
            for name, values in self._score(self._model.outputs(), batch).items():
                batches.setdefault(name, []).append(values[:count])
        return self.total({name: np.concatenate(parts) for name, parts in batches.items()})

    def held_out(self) -> Iterator[Tuple[Dict[str, Any], int]]:
        """Yield held-out batches of one size, with the number of samples that count."""
        return batches.evaluation_batches(self._arrays, self._batch)
