"""Loaders that take samples one by one: the common part of frameworks with a DataLoader.

A framework adds its samples of images and a function that makes batches of any samples.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Sequence, Tuple

import numpy as np

from harness.loader import Loaded, LoadedTokens, Loads, TokenLoads

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
