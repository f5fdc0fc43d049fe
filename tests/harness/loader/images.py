"""Small folders of images in ImageNet's layout, good ones and bad ones, made by Pillow."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image


def jpeg(seed: int, width: int = 40, height: int = 30, mode: str = "RGB") -> bytes:
    """A picture of coarse random patches."""
    channels = {"L": (), "RGB": (3,), "CMYK": (4,)}[mode]
    grid = np.random.RandomState(seed).randint(0, 256, (4, 5, *channels)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(grid, mode).resize((width, height)).save(file, "JPEG", quality=90)
    return file.getvalue()


def folder(root: Path, train: int = 6, val: int = 4, classes: int = 2) -> Path:
    """So many good images in each split."""
    for split, count in (("train", train), ("val", val)):
        for number in range(count):
            path = root / split / f"c{number % classes}" / f"i{number:02d}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            size = (40 + 7 * (number % 3), 30 + 5 * (number % 4))
            path.write_bytes(jpeg(100 * len(split) + number, *size))
    return root
