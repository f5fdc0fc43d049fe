"""Tasks to be learned: training data, held-out data and the scoring of outputs. This module scores
classifiers and ELECTRA's pre-training.

A task is a module of this folder with ``data`` and ``SCORING``; a model config names its task
(``task``). A task for ELECTRA makes whole sentences, in which the harness hides words. Standard
library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

#: Arrays of equally many samples, by the names of a model's inputs.
Arrays = Dict[str, Any]
#: Scored quantities of all samples, in order, by name: arrays of shape (samples,).
Scored = Dict[str, Any]

_HERE = os.path.dirname(os.path.realpath(__file__))
ACCURACY, TOP_5 = "accuracy", "top_5_accuracy"
#: With fewer classes, five guesses show little.
FEWEST_FOR_TOP_5 = 10
#: ``masked_accuracy``: fraction of hidden words that the generator ranks first;
#: ``sampled_accuracy``: fraction that it samples. The other scores are the discriminator's accuracy
#: over all tokens except padding, its precision and its recall on replaced tokens. A token counts
#: as predicted to be replaced if its logit is above 0.
SCORES = (
    "masked_accuracy",
    "sampled_accuracy",
    "discriminator_accuracy",
    "discriminator_precision",
    "discriminator_recall",
)
#: Scores that are undefined where no token is replaced, or none is predicted to be.
MAY_LACK = SCORES[3:]
#: Mean cross-entropies, over hidden words and over tokens other than padding.
LOSSES = ("generator_loss", "discriminator_loss")


class TaskError(Exception):
    """Invalid data; the message names the file and the place in it."""


def means(
    hyperparameters: Mapping[str, Any], sums: Mapping[str, float], samples: float
) -> Dict[str, float]:
    """Return the means over the samples."""
    return {name: value / samples for name, value in sums.items()}


class Data(NamedTuple):
    """Data of a task. ``train`` and ``held_out`` have no sample in common. ``total``: function that
    returns scores and loss of the held-out set from the scored values of its samples, where their
    sums do not suffice; ``notes``: for the record."""

    train: Arrays
    held_out: Arrays
    total: Optional[Callable[[Scored], Dict[str, float]]] = None
    notes: Mapping[str, Any] = MappingProxyType({})


class Scoring(NamedTuple):
    """Scores of a task, and the function that computes them.

    ``names``: names of the scores, from 0 to 1, the principal one first; ``score``: function of
    outputs and their batch that returns each sample's scored values by name, including ``loss``, in
    float64; ``losses``: names of the parts of the loss, if it has parts; ``may_lack``: names of the
    scores that may be undefined; ``of_sums``: function of hyper-parameters, sums of all scored
    values and number of samples that returns scores and loss."""

    names: Tuple[str, ...]
    score: Callable[[Sequence[Any], Arrays], Scored]
    losses: Tuple[str, ...] = ()
    may_lack: Tuple[str, ...] = ()
    of_sums: Callable[[Mapping[str, Any], Mapping[str, float], float], Dict[str, float]] = means


class LearningTask(NamedTuple):
    """Task that a model learns.

    ``data``: function of the tokens per sequence, None for models without sequences, and of the
    folder with the files, None for a task without files. ``amounts``: function of the folder that
    returns the numbers of training and held-out samples, for tasks where ``data`` takes long."""

    name: str
    scoring: Scoring
    data: Callable[..., Data]
    amounts: Optional[Callable[[str], Tuple[int, int]]] = None


def names() -> List[str]:
    """Return the names of all tasks."""
    files = os.listdir(_HERE)
    return sorted(file[:-3] for file in files if file.endswith(".py") and file[0] != "_")


def load(name: str) -> LearningTask:
    """Return a task by its name. Raises ValueError for an unknown one."""
    if name not in names():
        raise ValueError(f"no task {name!r}; there are: {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    return LearningTask(name, module.SCORING, module.data, getattr(module, "amounts", None))


def size(arrays: Arrays) -> int:
    """Return the number of samples."""
    return len(next(iter(arrays.values())))


def checksum(data: Data) -> str:
    """Return SHA-256 (hex) over the names and bytes of all arrays."""
    digest = hashlib.sha256()
    for arrays in (data.train, data.held_out):
        for name in sorted(arrays):
            digest.update(name.encode() + arrays[name].tobytes())
    return digest.hexdigest()


def class_scoring(classes: int) -> Scoring:
    """Return the scoring of a model with this number of classes."""
    return Scoring((ACCURACY, TOP_5) if classes >= FEWEST_FOR_TOP_5 else (ACCURACY,), score_classes)


def score_classes(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """Return the scores of each sample from logits (batch, classes) and ``labels`` (batch,).

    ``accuracy``: whether the class with the largest logit is right (top 1). ``top_5_accuracy``:
    whether fewer than five others have a logit as large or larger; left out with fewer than ten
    classes. ``loss``: cross-entropy."""
    import numpy as np

    logits, labels = np.asarray(outputs[0], np.float64), batch["labels"]
    every = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    logit = shifted[every, labels]
    figures = {
        ACCURACY: (logits.argmax(axis=1) == labels).astype(np.float64),
        "loss": np.log(np.exp(shifted).sum(axis=1)) - logit,
    }
    if logits.shape[1] >= FEWEST_FOR_TOP_5:
        others = (shifted >= logit[:, None]).sum(axis=1) - 1
        # otherwise logits that are not finite would count as right: no class ranks higher
        known = np.isfinite(logits).all(axis=1)
        figures[TOP_5] = ((others < 5) & known).astype(np.float64)
    return figures


def score_replaced(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """Return counts and sums of each sample, float64 (batch,), for :func:`replaced_scores`.

    Outputs of a batch: logits that a token is replaced (batch, tokens); the generator's logits of
    the hidden words (batch, predictions, vocabulary); 1 where a token is replaced, else 0 (batch,
    tokens)."""
    import numpy as np

    logits = np.asarray(outputs[0], np.float64)
    is_replaced = np.asarray(outputs[2]) != 0
    real, places = batch["attention_mask"] == 1, batch["masked_positions"]
    right = np.take_along_axis(batch["token_ids"], places, axis=1)
    guessed, surprise = _generated(outputs[1], right)
    called = logits > 0
    entropy = np.logaddexp(0.0, logits) - is_replaced * logits
    counted = {
        "hidden": np.full(places.shape, 1.0),
        "masked_accuracy": guessed == right,
        "sampled_accuracy": ~np.take_along_axis(is_replaced, places, axis=1),
        "generator_loss": surprise,
        "tokens": real,
        "discriminator_accuracy": real & (called == is_replaced),
        "discriminator_loss": np.where(real, entropy, 0.0),
        "called": real & called,
        "replaced": real & is_replaced,
        "found": real & is_replaced & called,
    }
    return {name: values.sum(axis=1, dtype=np.float64) for name, values in counted.items()}


def _generated(logits: Any, right: Any) -> Any:
    """Return the likeliest words and the cross-entropy of the right ones, (batch, predictions)
    each; a sample at a time, because a vocabulary is large."""
    import numpy as np

    guessed, surprise = np.zeros(right.shape, np.int64), np.zeros(right.shape)
    for number, expected in enumerate(right):
        own = np.asarray(logits[number], np.float64)
        most = own.max(axis=1, keepdims=True)
        sums = np.exp(own - most).sum(axis=1)
        guessed[number] = own.argmax(axis=1)
        surprise[number] = np.log(sums) + most[:, 0] - own[np.arange(len(expected)), expected]
    return guessed, surprise


def replaced_scores(
    hyperparameters: Mapping[str, Any], sums: Mapping[str, float], samples: float
) -> Dict[str, float]:
    """Return scores and losses from the sums of :func:`score_replaced`; a mean over no tokens is
    NaN.

    ``loss``: training loss, the weighted sum of the generator's and the discriminator's losses."""

    def share(name: str, denominator: str) -> float:
        return sums[name] / sums[denominator] if sums[denominator] else float("nan")

    scores = {
        "masked_accuracy": share("masked_accuracy", "hidden"),
        "sampled_accuracy": share("sampled_accuracy", "hidden"),
        "discriminator_accuracy": share("discriminator_accuracy", "tokens"),
        "discriminator_precision": share("found", "called"),
        "discriminator_recall": share("found", "replaced"),
        "generator_loss": share("generator_loss", "hidden"),
        "discriminator_loss": share("discriminator_loss", "tokens"),
    }
    weights = (hyperparameters[f"{name}_weight"] for name in ("generator", "discriminator"))
    return {**scores, "loss": sum(w * scores[name] for w, name in zip(weights, LOSSES))}


#: Scoring of ELECTRA's pre-training.
REPLACED = Scoring(SCORES, score_replaced, LOSSES, MAY_LACK, replaced_scores)
