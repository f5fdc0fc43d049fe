"""Expected samples of a loader, by Pillow and numpy, and the distance of others from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from harness.loader import DEVIATION, Loads
from harness.loader.pillow import PillowImages
from harness.samples import folder, order
from PIL import Image

SIZE, BATCH, SEED = 32, 4, 3


def asked_of(root: str, split: str) -> Loads:
    images = folder.scan(root, split, "refuse")
    places = order.places_of(len(images.paths), split, 0, SEED, 0, 1)
    return order.loads(images, places, split, 0, SEED, BATCH, SIZE, 0)


def expected(root: str, split: str) -> Any:
    """Return the images of :func:`asked_of`."""
    plain = PillowImages(asked_of(root, split))
    return np.stack([plain[number][0] for number in range(len(plain))])


def levels_of(root: str | Path, path: str) -> Any:
    """Return the levels of a decoded image, as a record has them."""
    with Image.open(Path(root, path)) as image:
        pixels = np.asarray(image.convert("RGB"), np.int64)
    rows, columns = ([(2 * n + 1) * length // 16 for n in range(8)] for length in pixels.shape[:2])
    return pixels[np.ix_(rows, columns)].reshape(64, 3)


def apart(first: Any, second: Any) -> tuple[float, float]:
    """Return the mean and maximum difference in levels."""
    levels = np.abs(first - second) * np.array(DEVIATION, np.float32) * 255
    return float(levels.mean()), float(levels.max())
