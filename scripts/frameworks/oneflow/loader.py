"""Images from files: oneflow.utils.data.DataLoader with worker processes, Pillow's decoder and
Pillow's transforms, which flowvision's stand on."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence

import numpy as np
from harness.loader import TIMEOUT, Loaded, LoadedTokens, Loads, TokenLoads, pillow
from harness.loader.tokens import Sequences
from oneflow.utils.data import DataLoader

pixels = pillow.pixels


def stacked(samples: Sequence[Sequence[Any]]) -> List[Any]:
    """A batch as numpy arrays: OneFlow's virtual machine does not live on in a worker process,
    which has been forked from the one that started it, and makes no tensor there."""
    return [np.stack(parts) for parts in zip(*samples)]


def _loaded(samples: Any, batch: int, workers: int) -> Iterator[Sequence[Any]]:
    """Batches as numpy arrays."""
    loader = DataLoader(
        samples,
        batch_size=batch,
        num_workers=workers,
        collate_fn=stacked,
        timeout=TIMEOUT if workers else 0,
    )
    yield from loader


def load(asked: Loads, accelerator: str) -> Iterator[Loaded]:
    """See :meth:`harness.loader.Loading.load`."""
    for given in _loaded(pillow.PillowImages(asked), asked.batch, asked.workers):
        yield Loaded(*given)


def load_tokens(asked: TokenLoads, accelerator: str) -> Iterator[LoadedTokens]:
    """See :meth:`harness.loader.Loading.load_tokens`."""
    for given in _loaded(Sequences(asked), asked.batch, asked.workers):
        yield LoadedTokens(*given)


def settings(accelerator: str) -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "oneflow.utils.data.DataLoader",
        "workers_are": "processes",
        "transforms": "Pillow",
        **pillow.settings(),
    }
