"""Evaluate a model on held-out data; make the learning curve of a training, an entry per epoch, and
its metrics, which are pure functions of a rank's entry in the record."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from tasks import Arrays, Scored, Scoring

from harness.adapter import Numerics
from harness.capabilities import BatchInput
from harness.kind import Metric

#: Function that yields held-out batches of one size, each with the number of samples that count.
HeldOut = Callable[[], Iterator[Tuple[Arrays, int]]]
#: An epoch: its number from 1, the samples of all ranks in it (``samples``), seconds of its steps
#: with loading (``train_seconds``) and of the evaluation after it (``evaluation_seconds``), mean
#: ``loss`` of its steps and of the last of them (``final_loss``), the last ``learning_rate``, and
#: the results on held-out data (``held_out``: each score, and the loss).
Epoch = Mapping[str, Any]
Rank = Mapping[str, Any]


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


def _is_number(value: Any) -> bool:
    """Return whether a value is a number; JSON has None otherwise."""
    return value is not None and math.isfinite(value)


def _number(value: Any) -> Optional[float]:
    return float(value) if _is_number(value) else None


def reached(curve: Sequence[Epoch], score: str, target: float) -> Optional[int]:
    """Return the number of epochs until ``score`` reached ``target``; None if it never did."""
    for number, epoch in enumerate(curve, 1):
        if _is_number(epoch["held_out"][score]) and epoch["held_out"][score] >= target:
            return number
    return None


def missed(curve: Sequence[Epoch], score: str, target: Optional[float]) -> str:
    """Return why a training failed; "" if it reached its target, or had none and ended with finite
    numbers."""
    so_far = "no epoch has a score"
    known = [epoch for epoch in curve if _is_number(epoch["held_out"][score])]
    if known:
        best = max(known, key=lambda epoch: float(epoch["held_out"][score]))
        so_far = f"the best {score} is {best['held_out'][score]:.4f}, after epoch {best['epoch']}"
    if not curve or not _is_number(curve[-1]["loss"]):
        return f"training diverged: the loss of epoch {len(curve)} is not a number; {so_far}"
    if target is not None and reached(curve, score, target) is None:
        return f"{score} {target:g} was not reached in {len(curve)} epochs: {so_far}"
    return ""


def metrics(scoring: Scoring, target: Optional[float], unit: str) -> Dict[str, Metric]:
    """Return the metrics of a training. ``unit``: unit of the throughput."""
    principal, losses = scoring.names[0], scoring.losses

    def at_target(name: str) -> Callable[[Rank], Optional[float]]:
        def rank_value(rank: Rank) -> Optional[float]:
            assert target is not None
            count = reached(rank["curve"], principal, target)
            return None if count is None else _total(rank["curve"][:count], name)

        return rank_value

    def last(name: str) -> Callable[[Rank], Optional[float]]:
        return lambda rank: _number(rank["curve"][-1]["held_out"][name])

    def final_loss(rank: Rank) -> Optional[float]:
        return _number(rank["curve"][-1]["final_loss"])

    def all_seconds(rank: Rank) -> float:
        return _total(rank["curve"], "train_seconds") + _total(rank["curve"], "evaluation_seconds")

    to_target = {
        "time_to_target": Metric("s", "lower", "max", at_target("train_seconds")),
        "samples_to_target": Metric("samples", "lower", "first", at_target("samples")),
    }
    speed = Metric(unit, "higher", "min", _throughput)
    # frameworks are compared by the first metric
    return {
        **(to_target if target is not None else {"throughput": speed}),
        **{
            name: Metric(
                "fraction", "higher", "first", last(name), optional=name in scoring.may_lack
            )
            for name in scoring.names
        },
        **{name: Metric("nats", "lower", "first", last(name)) for name in ("loss", *losses)},
        # training loss of the last steps, with dropout, as NVIDIA publishes it for ELECTRA
        **({"final_loss": Metric("nats", "lower", "mean", final_loss)} if losses else {}),
        "time_to_train": Metric("s", "lower", "max", all_seconds),
        "throughput": speed,
    }


def _total(curve: Sequence[Epoch], name: str) -> float:
    return float(sum(epoch[name] for epoch in curve))


def _throughput(rank: Rank) -> float:
    """Return samples per second of all epochs after the first, in which frameworks compile; of the
    first if it is the only one."""
    later = rank["curve"][1:] or rank["curve"]
    return _total(later, "samples") / _total(later, "train_seconds")
