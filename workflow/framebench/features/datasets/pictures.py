"""Random images with the size, bytes and detail of photographs.

The cost of reading and decoding a JPEG depends on its pixels and bytes. ImageNet's training images
have about 500 x 375 pixels and 110 KB on average; these images match that, but not its histogram.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

Array = np.ndarray[Any, np.dtype[np.float32]]

#: Sizes (width, height) and their frequencies.
SIZES = {
    (500, 375): 0.55,
    (375, 500): 0.13,
    (500, 333): 0.15,
    (333, 500): 0.05,
    (500, 500): 0.04,
    (640, 480): 0.04,
    (400, 300): 0.04,
}
#: Amplitude of an octave relative to the next coarser one: in natural images, amplitudes fall with
#: the frequency.
_FALL = 0.62
_EDGES = 3


def make(seed: int, number: int) -> bytes:
    """Return the JPEG file of image ``number`` of ``seed``.
    The same versions of numpy and Pillow give the same bytes."""
    random = np.random.RandomState([seed, number])
    width, height = [*SIZES][random.choice(len(SIZES), p=[*SIZES.values()])]
    light = _field(random, width, height)
    for _ in range(_EDGES):  # edges of objects
        light += random.normal(0.0, 0.7) * (_field(random, width, height, octaves=3) > 0)
    light += random.lognormal(-1.2, 0.5) * random.standard_normal(light.shape)
    colours = [_field(random, width, height, octaves=4) for _ in range(2)]
    levels = np.empty((height, width, 3), np.float32)
    levels[..., 0] = 128 + 45 * light
    for channel, colour in enumerate(colours, 1):
        levels[..., channel] = 128 + 18 * colour
    whole = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    image = Image.fromarray(whole, "YCbCr")
    file = io.BytesIO()
    image.save(file, "JPEG", quality=int(random.randint(90, 98)), subsampling="4:2:0")
    return file.getvalue()


def _field(random: np.random.RandomState, width: int, height: int, octaves: int = 8) -> Array:
    """Return a smooth random field (height, width) of mean 0 and deviation 1.
    It is a sum of grids of random numbers, each twice as fine as the previous one."""
    total = np.zeros((height, width), np.float32)
    amplitude, cells = 1.0, 2
    for _ in range(octaves):
        if cells > max(width, height):
            break
        shape = (max(2, cells * height // width), cells)
        grid = random.standard_normal(shape).astype(np.float32)
        smooth = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
        total += amplitude * np.asarray(smooth)
        amplitude *= _FALL
        cells *= 2
    total -= total.mean()
    return np.asarray(total / max(float(total.std()), 1e-6), np.float32)
