"""Evaluate a model on held-out data."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from tasks import Arrays, Scored, Scoring

from harness.adapter import Numerics
from harness.batch_input import BatchInput

#: Function that yields held-out batches of one size, each with the number of samples that count.
HeldOut = Callable[[], Iterator[Tuple[Arrays, int]]]


class Learner(BatchInput, Numerics):
    """Adapter that can be trained and evaluated."""


class Evaluator:
    """Second model of the same framework in the same process, built for inference.

    It has running statistics and no dropout. Before each evaluation it gets the weights and
    statistics of the trained model, by the names that all frameworks share."""

    def __init__(
        self,
        trained: Learner,
        scoring: Scoring,
        first: Arrays,
        held_out: HeldOut,
        total: Optional[Callable[[Scored], Dict[str, float]]] = None,
        shared: bool = False,
    ) -> None:
        """Build the model. ``trained``: started, but not built yet; ``first``: a batch of at least
        the case's samples; ``total``: as in :class:`tasks.Data`; ``shared``: whether each rank has
        a part of the samples.

        Building this model draws random numbers; building the trained one seeds them anew."""
        self._trained, self._scoring, self._held_out = trained, scoring, held_out
        self._total = total
        self._add_up: Callable[[float], float] = trained.all_reduce if shared else float
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
            for name, values in self._scoring.score(self._model.outputs(), batch).items():
                scored.setdefault(name, []).append(values[:count])
        whole = {name: np.concatenate(parts) for name, parts in scored.items()}
        if self._total:
            return self._total(whole)
        samples = self._add_up(float(len(next(iter(whole.values())))))
        sums = {name: self._add_up(float(values.sum())) for name, values in whole.items()}
        return self._scoring.of_sums(trained.model_config["hyperparameters"], sums, samples)
