"""Handwritten digits: 1,797 images of 8 x 8 in 17 shades, ten classes. `NOTICE.md` says where they
are from; `digits.csv.gz` has a line for each, its 64 pixels and its class."""

from __future__ import annotations

import csv
import gzip
import os
from typing import Any, Dict, Sequence

from tasks import NOTHING, Arrays, Data, Given

SCORES = ("accuracy",)

_FILE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "digits.csv.gz")
#: Of all images, those that are held out: every one in so many, after a shuffle that never changes.
HELD_OUT = 5


def data(given: Given = NOTHING) -> Data:
    """Images as float32 (samples, 8, 8, 1), of which those for training have mean 0 and standard
    deviation 1 all together; labels as int64. 1,437 for training, 360 held out."""
    import numpy as np

    with gzip.open(_FILE, "rt", encoding="ascii", newline="") as file:
        rows = np.array([[float(cell) for cell in row] for row in csv.reader(file)])
    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    held_out = np.arange(len(rows)) % HELD_OUT == 0
    pixels = rows[~held_out, :-1]
    mean, deviation = pixels.mean(), pixels.std()

    def arrays(chosen: Any) -> Arrays:
        images = ((rows[chosen, :-1] - mean) / deviation).astype(np.float32)
        return {
            "images": images.reshape(-1, 8, 8, 1),
            "labels": rows[chosen, -1].astype(np.int64),
        }

    return Data(arrays(~held_out), arrays(held_out))


def score(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """``accuracy``: whether the class with the largest logit is the right one (top 1); ``loss``:
    cross-entropy. Of logits (batch, classes)."""
    import numpy as np

    logits, labels = np.asarray(outputs[0], np.float64), batch["labels"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = shifted[np.arange(len(labels)), labels]
    return {
        "accuracy": (logits.argmax(axis=1) == labels).astype(np.float64),
        "loss": np.log(np.exp(shifted).sum(axis=1)) - own,
    }
