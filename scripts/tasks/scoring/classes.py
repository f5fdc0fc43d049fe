"""How outputs are scored that tell classes apart: logits (batch, classes), and in a batch
``labels`` (batch,), the right class of each sample."""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

from tasks import Arrays

ACCURACY, TOP_5 = "accuracy", "top_5_accuracy"
#: Among fewer classes five guesses tell little.
FEWEST_FOR_TOP_5 = 10


def scores(classes: int) -> Tuple[str, ...]:
    """Their names, where there are so many classes."""
    return (ACCURACY, TOP_5) if classes >= FEWEST_FOR_TOP_5 else (ACCURACY,)


def score(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """Of each sample. ``accuracy``: whether the class with the largest logit is the right one (top
    1); ``top_5_accuracy``: whether fewer than five others have a logit as large as its own, or
    larger; it is left out where there are fewer than ten classes. ``loss``: cross-entropy."""
    import numpy as np

    logits, labels = np.asarray(outputs[0], np.float64), batch["labels"]
    every = np.arange(len(labels))
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = shifted[every, labels]
    found = {
        ACCURACY: (logits.argmax(axis=1) == labels).astype(np.float64),
        "loss": np.log(np.exp(shifted).sum(axis=1)) - own,
    }
    if TOP_5 in scores(logits.shape[1]):
        others = (shifted >= own[:, None]).sum(axis=1) - 1
        known = np.isfinite(logits).all(axis=1)  # among what is no number nothing is larger
        found[TOP_5] = ((others < 5) & known).astype(np.float64)
    return found
