"""Images from files: oneflow.utils.data.DataLoader with worker processes, Pillow's decoder and
Pillow's transforms, on which flowvision's are based."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from harness.loader import TIMEOUT, one_by_one
from oneflow.utils.data import DataLoader


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`.
    Workers return numpy arrays, because OneFlow's virtual machine does not survive a fork, so that
    workers cannot make tensors."""
    yield from DataLoader(
        samples,
        batch_size=batch,
        num_workers=workers,
        collate_fn=one_by_one.stacked,
        timeout=TIMEOUT if workers else 0,
    )


load, settings = one_by_one.loader_of(
    one_by_one.ImageSamples, batches, loader="oneflow.utils.data.DataLoader", transforms="Pillow"
)
