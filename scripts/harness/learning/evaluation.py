"""How good a model is at what it was not trained with."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from tasks import Scored, means

from harness.adapter import Numerics
from harness.batch_input import LearningRateSchedule
from harness.learning import batches

#: From outputs and their batch to the scores of each sample, and the loss of each, by name.
Score = Callable[[Sequence[Any], Dict[str, Any]], Dict[str, Any]]


class Learner(LearningRateSchedule, Numerics):
    """An adapter as training with evaluations sees it."""


class Evaluator:
    """A second model of the same framework in the same process, built for inference: with running
    statistics and without dropout. It gets the weights and statistics of the one that is trained
    before each evaluation, by the names that all frameworks share."""

    def __init__(
        self,
        trained: Learner,
        score: Score,
        held_out: Dict[str, Any],
        total: Callable[[Scored], Dict[str, float]] = means,
    ) -> None:
        """``trained``: started, and not built yet. Building this model draws random numbers, which
        building that one seeds. ``total``: from what was scored of the samples to their scores."""
        self._trained, self._score, self._arrays = trained, score, held_out
        self.total = total
        self._model = trained.inference_adapter()
        self._batch = trained.case.batch_per_device
        first, _ = next(batches.in_turn(held_out, self._batch))
        self._model.build(first)

    def scores(self) -> Dict[str, float]:
        """Each score of all samples, and the loss."""
        self.load({**self._trained.weights(), **self._trained.statistics()})
        return self.scores_as_loaded()

    def load(self, weights: Dict[str, Any]) -> None:
        """Weights and running statistics of any framework."""
        self._model.load_weights(weights)

    def scores_as_loaded(self) -> Dict[str, float]:
        """The same with what was loaded last."""
        import numpy as np

        found: Dict[str, List[Any]] = {}
        for batch, count in self.held_out():
            self._model.feed(batch)
            for name, values in self._score(self._model.outputs(), batch).items():
                found.setdefault(name, []).append(values[:count])
        return self.total({name: np.concatenate(parts) for name, parts in found.items()})

    def held_out(self) -> Iterator[Tuple[Dict[str, Any], int]]:
        """What is held out, in batches of one size, and how many samples of each count."""
        return batches.in_turn(self._arrays, self._batch)
