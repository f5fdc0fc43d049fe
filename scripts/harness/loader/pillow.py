"""Images that Pillow decodes, one by one: for loaders whose workers are processes of Python.

What a framework brings of its own is its loader, and transforms where it has some.
"""

from __future__ import annotations

import io
from typing import Any, Dict, Tuple

import numpy as np
import PIL
from PIL import Image, features

from harness.loader import DEVIATION, MEAN, Loads, centre, crop, is_flipped


def decode(file: Any) -> Any:
    """A file, by its path or open, as an RGB image of Pillow."""
    with Image.open(file) as image:
        return image.convert("RGB")


def pixels(content: bytes) -> Any:
    """Of a JPEG file; see :class:`harness.loader.Loading`."""
    return np.asarray(decode(io.BytesIO(content)))


def settings() -> Dict[str, Any]:
    """Of the decoder, for :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "decoder": f"Pillow {PIL.__version__}, libjpeg {features.version_codec('jpg')}",
        "interpolation": "bilinear, antialiased",
    }


class PillowImages:
    """The samples that are asked for, by their place in that: what a DataLoader takes as a data
    set. Transforms are Pillow's own; a framework puts its own in their place."""

    def __init__(self, asked: Loads) -> None:
        self._asked = asked

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        """A sample as :class:`harness.loader.Loaded` has a batch of them."""
        return self.sample(decode(self._asked.paths[number]), number)

    def sample(self, image: Any, number: int) -> Tuple[Any, int, int]:
        """As that of an image of Pillow which is decoded already."""
        asked, label = self._asked, int(self._asked.labels[number])
        if asked.decodes_only:
            return np.array(image.getpixel((0, 0)), np.float32), label, number
        size = asked.size
        if asked.draws is None:
            tall, wide, top, left = centre(image.height, image.width, size)
            image = self.cut(self.resized(image, tall, wide), top, left, size, size)
        else:
            draws = asked.draws[number]
            box = crop(image.height, image.width, draws)
            image = self.resized(self.cut(image, *box), size, size)
            if is_flipped(draws):
                image = self.mirrored(image)
        return self.normalised(image), label, number

    def resized(self, image: Any, height: int, width: int) -> Any:
        """Bilinear and antialiased."""
        return image.resize((width, height), Image.Resampling.BILINEAR)

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        """That part of an image."""
        return image.crop((left, top, left + width, top + height))

    def mirrored(self, image: Any) -> Any:
        """Left to right."""
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)

    def normalised(self, image: Any) -> Any:
        """Float32 (height, width, 3)."""
        levels = np.asarray(image, np.float32) / np.float32(255)
        return (levels - np.array(MEAN, np.float32)) / np.array(DEVIATION, np.float32)
