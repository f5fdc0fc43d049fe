"""Images from files: mindspore.dataset's DataLoader with worker processes, Pillow's decoder and the
transforms of mindspore.dataset.vision, which use Pillow for Pillow's images."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

import numpy as np
from harness.loader import DEVIATION, MEAN, TIMEOUT, one_by_one
from mindspore.dataset import vision
from mindspore.dataset.dataloader import DataLoader

LEVELS = 255
_MIRROR = vision.RandomHorizontalFlip(1.0)
_NORMALIZE = vision.Normalize([LEVELS * m for m in MEAN], [LEVELS * d for d in DEVIATION])


class Images(one_by_one.ImageSamples):
    """Images of a request, decoded by Pillow and transformed by MindSpore, as numpy arrays."""

    def resized(self, image: Any, height: int, width: int) -> Any:
        return vision.Resize((height, width), vision.Inter.LINEAR)(image)

    def mirrored(self, image: Any) -> Any:
        return _MIRROR(image)

    def normalised(self, image: Any) -> Any:
        return _NORMALIZE(np.asarray(image))


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`."""
    yield from DataLoader(
        samples,
        batch_size=batch,
        num_workers=workers,
        collate_fn=one_by_one.stacked,
        timeout=float(TIMEOUT if workers else 0),
    )


load, settings = one_by_one.loader_of(
    Images,
    batches,
    loader="mindspore.dataset.dataloader.DataLoader",
    transforms="mindspore.dataset.vision",
)
