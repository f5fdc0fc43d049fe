"""Images decoded by Pillow, one by one: for loaders whose workers are Python processes.

A framework adds its loader, and transforms where it has some.
"""

from __future__ import annotations

import io
from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy as np
import PIL
from PIL import Image, features

from harness.loader import DEVIATION, MEAN, Loads, centre, crop, is_flipped
from harness.loader.one_by_one import Batches, LoadImages, LoadTokens, loading


def decode(file: Any) -> Any:
    """Return an RGB image of Pillow from a path or an open file."""
    with Image.open(file) as image:
        return image.convert("RGB")


def pixels(content: bytes) -> Any:
    """Return the pixels of a JPEG file; see :class:`harness.loader.Loading`."""
    return np.asarray(decode(io.BytesIO(content)))


class PillowImages:
    """Requested samples by position: the data set of a DataLoader. Transforms are Pillow's; a
    framework may override them."""

    def __init__(self, loads: Loads) -> None:
        self._asked = loads

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        """Return a sample like one of a batch of :class:`harness.loader.Loaded`."""
        asked, label = self._asked, int(self._asked.labels[number])
        image = decode(asked.paths[number])
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
        """Resize bilinearly with antialiasing."""
        return image.resize((width, height), Image.Resampling.BILINEAR)

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        """Crop an image."""
        return image.crop((left, top, left + width, top + height))

    def mirrored(self, image: Any) -> Any:
        """Mirror an image left to right."""
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)

    def normalised(self, image: Any) -> Any:
        """Return normalized float32 (height, width, 3)."""
        levels = np.asarray(image, np.float32) / np.float32(255)
        return (levels - np.array(MEAN, np.float32)) / np.array(DEVIATION, np.float32)


class Loader(NamedTuple):
    """Functions of a framework's module ``loader``; see :class:`harness.loader.Loading`."""

    load: LoadImages
    load_tokens: LoadTokens
    pixels: Callable[[bytes], Any]
    settings: Callable[[str], Dict[str, Any]]


def loader_of(
    images: Callable[[Loads], Any], batches: Batches, name: str, transforms: str
) -> Loader:
    """Return the loader of ``images`` and tokens, see :func:`harness.loader.one_by_one.loading`.
    ``name``, ``transforms``: the framework's, for the record."""

    def settings(accelerator: str) -> Dict[str, Any]:
        return {
            "loader": name,
            "workers_are": "processes",
            "transforms": transforms,
            "decoder": f"Pillow {PIL.__version__}, libjpeg {features.version_codec('jpg')}",
            "interpolation": "bilinear, antialiased",
        }

    return Loader(*loading(images, batches), pixels, settings)
