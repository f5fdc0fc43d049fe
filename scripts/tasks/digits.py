"""Handwritten digits: 1,797 images of 8 x 8 in 17 shades, ten classes. `NOTICE.md` says where they
are from; `digits.csv.gz` has a line for each, its 64 pixels and its class."""

from __future__ import annotations

import csv
import gzip
import os
from typing import Any, Optional

from tasks import Arrays, Data, class_scoring

SCORING = class_scoring(10)

_FILE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "digits.csv.gz")
#: One image in HELD_OUT is held out, after a shuffle that never changes.
HELD_OUT = 5


def data(length: Optional[int] = None, folder: Optional[str] = None) -> Data:
    """Return images as float32 (samples, 8, 8, 1) and labels as int64: 1,437 for training, 360 held
    out. Images for training have mean 0 and standard deviation 1 all together."""
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
        return {"images": images.reshape(-1, 8, 8, 1), "labels": rows[chosen, -1].astype(np.int64)}

    return Data(arrays(~held_out), arrays(held_out))
