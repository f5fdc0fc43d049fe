"""Loaders that take samples one by one: the common part of frameworks with a DataLoader.

A framework adds a function that makes batches of any samples, and its own transforms where it has
some. Otherwise Pillow, which not every environment has, decodes and transforms images.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from harness.loader import DEVIATION, MEAN, Loads, Request, TokenLoads, centre, crop, is_flipped

#: Function of samples (a sequence of tuples of values), batch size, number of workers and
#: accelerator. It yields batches in order, each a sequence of numpy arrays, one per value.
Batches = Callable[[Any, int, int, str], Iterator[Sequence[Any]]]


def loader_of(
    images: Callable[[Loads], Any], batches: Batches, **about: str
) -> Tuple[Callable[[Request, str], Iterator[Any]], Callable[[str], Dict[str, Any]]]:
    """Return the functions ``load`` and ``settings`` of a framework's module ``loader``; see
    :class:`harness.loader.Loading`.

    ``images``: returns the samples of a request, each an image and its label. ``about``: settings
    for the record, besides Pillow's."""

    def load(loads: Request, accelerator: str) -> Iterator[Any]:
        samples = Sequences(loads) if isinstance(loads, TokenLoads) else images(loads)
        yield from batches(samples, loads.batch, loads.workers, accelerator)

    def settings(accelerator: str) -> Dict[str, Any]:
        usual = {"workers_are": "processes", "interpolation": "bilinear, antialiased"}
        if "decoder" not in about:
            import PIL
            from PIL import features

            usual["decoder"] = f"Pillow {PIL.__version__}, libjpeg {features.version_codec('jpg')}"
        return {**usual, **about}

    return load, settings


class ImageSamples:
    """Requested samples by position: the data set of a DataLoader. A framework may override the
    transforms of an image."""

    def __init__(self, loads: Loads) -> None:
        self._asked = loads

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int]:
        asked, label = self._asked, int(self._asked.labels[number])
        image = self.decoded(asked.paths[number])
        (height, width), size = self.extents(image), asked.size
        if asked.draws is None:
            tall, wide, top, left = centre(height, width, size)
            image = self.cut(self.resized(image, tall, wide), top, left, size, size)
        else:
            draws = asked.draws[number]
            image = self.resized(self.cut(image, *crop(height, width, draws)), size, size)
            if is_flipped(draws):
                image = self.mirrored(image)
        return self.normalised(image), label

    def decoded(self, path: str) -> Any:
        """Return the RGB image in a file."""
        from PIL import Image

        with Image.open(path) as image:
            return image.convert("RGB")

    def extents(self, image: Any) -> Sequence[int]:
        """Return height and width."""
        return image.height, image.width

    def resized(self, image: Any, height: int, width: int) -> Any:
        """Resize bilinearly with antialiasing."""
        from PIL import Image

        return image.resize((width, height), Image.Resampling.BILINEAR)

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        return image.crop((left, top, left + width, top + height))

    def mirrored(self, image: Any) -> Any:
        """Mirror an image left to right."""
        from PIL import Image

        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)

    def normalised(self, image: Any) -> Any:
        """Return normalized float32 (height, width, 3)."""
        scale, offset = normalization(self._asked.size)
        levels = np.asarray(image) * scale
        levels -= offset
        return levels


@functools.lru_cache(maxsize=1)
def normalization(size: int) -> Tuple[Any, Any]:
    """Return factor and offset of each value of an image, float32 (size, size, 3). Broadcasting one
    factor per channel takes several times as long."""
    deviation = np.array(DEVIATION)
    each = 1 / (255 * deviation), np.array(MEAN) / deviation
    scale, offset = (np.broadcast_to(v, (size, size, 3)).astype(np.float32) for v in each)
    return scale, offset


class Sequences:
    """Requested sequences by position: int64 (length,).

    The file is mapped into memory by each process that reads it."""

    def __init__(self, loads: TokenLoads) -> None:
        self._asked = loads
        self._tokens: Any = None

    def __len__(self) -> int:
        return len(self._asked.starts)

    def __getitem__(self, number: int) -> Tuple[Any]:
        loads = self._asked
        if self._tokens is None:
            self._tokens = np.memmap(loads.path, np.dtype(loads.dtype).newbyteorder("<"), "r")
        start = int(loads.starts[number])
        return (self._tokens[start : start + loads.length].astype(np.int64),)


def stacked(samples: Sequence[Sequence[Any]]) -> List[Any]:
    """Return a batch of ``samples`` as numpy arrays."""
    return [np.stack(values) for values in zip(*samples)]
