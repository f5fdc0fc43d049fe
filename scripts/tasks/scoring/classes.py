"""Scoring of classifiers: logits (batch, classes) against ``labels`` (batch,)."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from tasks import Arrays, Scoring

ACCURACY, TOP_5 = "accuracy", "top_5_accuracy"
#: Among fewer classes five guesses tell little.
FEWEST_FOR_TOP_5 = 10


def scoring(classes: int) -> Scoring:
    """Return the scoring of a model with this number of classes."""
    return Scoring((ACCURACY, TOP_5) if classes >= FEWEST_FOR_TOP_5 else (ACCURACY,), score)


def score(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """Return the scores of each sample.

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
        known = np.isfinite(logits).all(axis=1)  # among what is no number nothing is larger
        figures[TOP_5] = ((others < 5) & known).astype(np.float64)
    return figures
