"""Small folders of images in ImageNet's layout, the samples of them, and the distance of others."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from harness.loader import DEVIATION, Loads
from harness.loader.one_by_one import ImageSamples
from harness.samples.folder import loads, places_of, scan
from PIL import Image
from PIL.ExifTags import Base

SIZE, BATCH, SEED = 32, 4, 3


def asked_of(root: str, split: str) -> Loads:
    images = scan(root, split)
    places = places_of(len(images.paths), split, 0, SEED, 0, 1)
    return loads(images, places, split, 0, SEED, BATCH, SIZE, 0)


def expected(root: str, split: str) -> Any:
    """Return the images of :func:`asked_of`."""
    plain = ImageSamples(asked_of(root, split))
    return np.stack([plain[number][0] for number in range(len(plain))])


def apart(first: Any, second: Any) -> tuple[float, float]:
    """Return the mean and maximum difference in levels."""
    levels = np.abs(first - second) * np.array(DEVIATION, np.float32) * 255
    return float(levels.mean()), float(levels.max())


def picture(seed: int, width: int, height: int, mode: str = "RGB") -> Image.Image:
    channels = {"L": (), "RGB": (3,), "CMYK": (4,)}[mode]
    grid = np.random.RandomState(seed).randint(0, 256, (4, 5, *channels)).astype(np.uint8)
    return Image.fromarray(grid, mode).resize((width, height))


def encoded(image: Image.Image, form: str, orientation: int = 0) -> bytes:
    """Return an image file. ``orientation``: EXIF's, 1 to 8; 0: without EXIF."""
    file, more = io.BytesIO(), {}
    if orientation:
        more["exif"] = Image.Exif()
        more["exif"][Base.Orientation] = orientation
    image.save(file, form, quality=90, **more)
    return file.getvalue()


def jpeg(seed: int, width: int = 40, height: int = 30, mode: str = "RGB") -> bytes:
    return encoded(picture(seed, width, height, mode), "JPEG")


#: Unusual valid files, as in ImageNet and of cameras, by name.
STRANGE = {
    "png": encoded(picture(11, 64, 48), "PNG"),
    "turned": encoded(picture(12, 64, 48), "JPEG", orientation=6),
    "longer": jpeg(13, 64, 48) + b"and more",
}


def folder(root: Path, train: int = 6, val: int = 4, classes: int = 2) -> Path:
    for split, count in (("train", train), ("val", val)):
        for number in range(count):
            path = root / split / f"c{number % classes}" / f"i{number:02d}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            size = (40 + 7 * (number % 3), 30 + 5 * (number % 4))
            path.write_bytes(jpeg(100 * len(split) + number, *size))
    return root
