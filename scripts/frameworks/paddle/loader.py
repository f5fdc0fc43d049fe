"""Images from files: paddle.io.DataLoader with worker processes, Pillow's decoder, the functions of
paddle.vision.transforms, as Paddle's own image classification has them."""

from __future__ import annotations

import gc
from typing import Any, Iterator, Optional, Sequence

import numpy as np
import paddle
from harness.loader import DEVIATION, MEAN, one_by_one
from paddle.vision.transforms import functional


class Images(one_by_one.ImageSamples):
    """Images of a request as numpy arrays, because worker processes cannot make tensors."""

    def resized(self, image: Any, height: int, width: int) -> Any:
        return functional.resize(image, (height, width), "bilinear")

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        return functional.crop(image, top, left, height, width)

    def mirrored(self, image: Any) -> Any:
        return functional.hflip(image)

    def normalised(self, image: Any) -> Any:
        levels = np.asarray(image, np.float32) / np.float32(255)
        return functional.normalize(levels, MEAN, DEVIATION, data_format="HWC")


class Guarded:
    """Data set whose errors end the loader. Without workers, a thread of PaddlePaddle reads the
    data; after an error it would end silently, and its batch would never come."""

    def __init__(self, samples: Any) -> None:
        self._samples = samples
        self.error: Optional[Exception] = None

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, number: int) -> Any:
        try:
            return self._samples[number]
        except Exception as error:
            self.error = error
            raise StopIteration from error


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`.
    Paddle's ``timeout`` is not a limit: it is the interval at which a thread checks the workers,
    and the time for which it holds an epoch's last batch."""
    guarded = Guarded(samples)
    loader = paddle.io.DataLoader(
        samples if workers else guarded,
        batch_size=batch,
        num_workers=workers,
        places=paddle.CPUPlace(),
        return_list=True,
        timeout=1 if workers else 0,
    )
    # A forked process must not collect its parent's garbage, because a reader of an earlier epoch
    # would wait forever for threads that only the parent has.
    # Within a timed window, objects are frozen already and there is little garbage.
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:
        gc.collect()
    else:
        gc.freeze()
    iterator = iter(loader)
    if not is_frozen:
        gc.unfreeze()
    for tensors in iterator:
        yield [tensor.numpy() for tensor in tensors]
    if guarded.error:
        raise guarded.error


load, settings = one_by_one.loader_of(
    Images, batches, loader="paddle.io.DataLoader", transforms="paddle.vision.transforms"
)
