"""Expected samples of a loader, by Pillow and numpy, and the distance of others from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.loader import DEVIATION, Loads
from harness.loader.one_by_one import ImageSamples
from harness.samples import folder, order

SIZE, BATCH, SEED = 32, 4, 3


def asked_of(root: str, split: str) -> Loads:
    images = folder.scan(root, split)
    places = order.places_of(len(images.paths), split, 0, SEED, 0, 1)
    return order.loads(images, places, split, 0, SEED, BATCH, SIZE, 0)


def expected(root: str, split: str) -> Any:
    """Return the images of :func:`asked_of`."""
    plain = ImageSamples(asked_of(root, split))
    return np.stack([plain[number][0] for number in range(len(plain))])


def apart(first: Any, second: Any) -> tuple[float, float]:
    """Return the mean and maximum difference in levels."""
    levels = np.abs(first - second) * np.array(DEVIATION, np.float32) * 255
    return float(levels.mean()), float(levels.max())
