"""Loaders that take samples one by one: the common part of frameworks with a DataLoader.

A framework adds how it decodes and transforms an image, and a function that makes batches of any
samples.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any, Callable, Iterator, List, Sequence, Tuple

import numpy as np

from harness.loader import (
    DEVIATION,
    MEAN,
    Loaded,
    LoadedTokens,
    Loads,
    TokenLoads,
    centre,
    crop,
    is_flipped,
)

#: Function of samples (a sequence of tuples of values), batch size, number of workers and
#: accelerator. It yields batches in order, each a sequence of numpy arrays, one per value.
Batches = Callable[[Any, int, int, str], Iterator[Sequence[Any]]]
LoadImages = Callable[[Loads, str], Iterator[Loaded]]
LoadTokens = Callable[[TokenLoads, str], Iterator[LoadedTokens]]


def loading(images: Callable[[Loads], Any], batches: Batches) -> Tuple[LoadImages, LoadTokens]:
    """Return ``load`` and ``load_tokens`` of a framework's module ``loader``; see
    :class:`harness.loader.Loading`.

    ``images``: returns the samples of a request, each a :class:`harness.loader.Loaded` without the
    batch axis."""

    def load(loads: Loads, accelerator: str) -> Iterator[Loaded]:
        for batch in batches(images(loads), loads.batch, loads.workers, accelerator):
            yield Loaded(*batch)

    def load_tokens(loads: TokenLoads, accelerator: str) -> Iterator[LoadedTokens]:
        for batch in batches(Sequences(loads), loads.batch, loads.workers, accelerator):
            yield LoadedTokens(*batch)

    return load, load_tokens


class ImageSamples(ABC):
    """Requested samples by position: the data set of a DataLoader."""

    def __init__(self, loads: Loads) -> None:
        self._asked = loads

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        """Return a sample like one of a batch of :class:`harness.loader.Loaded`."""
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
        return self.normalised(image), label, number

    @abstractmethod
    def decoded(self, path: str) -> Any:
        """Return the image in a file."""

    @abstractmethod
    def extents(self, image: Any) -> Sequence[int]:
        """Return height and width."""

    @abstractmethod
    def resized(self, image: Any, height: int, width: int) -> Any:
        """Resize bilinearly with antialiasing."""

    @abstractmethod
    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        """Crop an image."""

    @abstractmethod
    def mirrored(self, image: Any) -> Any:
        """Mirror an image left to right."""

    def normalised(self, image: Any) -> Any:
        """Return normalized float32 (height, width, 3)."""
        scale, offset = normalization(self._asked.size)
        levels = np.asarray(image) * scale
        levels -= offset
        return levels


@functools.lru_cache(maxsize=1)
def normalization(size: int) -> Tuple[Any, Any]:
    """Return factor and offset of each value of an image, float32 (size, size, 3). Broadcasting
    those of the channels takes several times as long."""
    deviation = np.array(DEVIATION)
    each = 1 / (255 * deviation), np.array(MEAN) / deviation
    scale, offset = (np.broadcast_to(v, (size, size, 3)).astype(np.float32) for v in each)
    return scale, offset


class Sequences:
    """Requested sequences by position, with that position: int64 (length,).

    The file is mapped into memory by each process that reads it."""

    def __init__(self, loads: TokenLoads) -> None:
        self._asked = loads
        self._tokens: Any = None

    def __len__(self) -> int:
        return len(self._asked.starts)

    def __getitem__(self, number: int) -> Tuple[Any, int]:
        loads = self._asked
        if self._tokens is None:
            self._tokens = np.memmap(loads.path, np.dtype(loads.dtype).newbyteorder("<"), "r")
        start = int(loads.starts[number])
        return self._tokens[start : start + loads.length].astype(np.int64), number


def stacked(samples: Sequence[Sequence[Any]]) -> List[Any]:
    """Return a batch of ``samples`` as numpy arrays."""
    return [np.stack(values) for values in zip(*samples)]
