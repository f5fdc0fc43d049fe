"""Images from files: gluon.data.DataLoader with worker processes, and mxnet.image, which is OpenCV,
as Gluon's own image classification has them."""

from __future__ import annotations

import functools
import time
from typing import Any, Iterator, List, Sequence

import mxnet as mx
import numpy as np
from harness.loader import TIMEOUT, content_of, one_by_one, whole_image
from mxnet.gluon.data import DataLoader


class Images(one_by_one.ImageSamples):
    """Images of a request as arrays of MXNet, until they are normalised."""

    def decoded(self, path: str) -> Any:
        """Decode an image file to uint8 (height, width, 3). Raises ValueError for a truncated file,
        which OpenCV would fill up silently."""
        return mx.image.imdecode(whole_image(content_of(path)))

    def extents(self, image: Any) -> Sequence[int]:
        return tuple(image.shape[:2])

    def resized(self, image: Any, height: int, width: int) -> Any:
        """Resize by area (OpenCV's code 3) where an image shrinks, else bilinearly (1)."""
        shrinks = height * width < image.shape[0] * image.shape[1]
        return mx.image.imresize(image, width, height, 3 if shrinks else 1)

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        return mx.image.fixed_crop(image, left, top, width, height)

    def mirrored(self, image: Any) -> Any:
        return image.asnumpy()[:, ::-1]

    def normalised(self, image: Any) -> Any:
        return super().normalised(image if isinstance(image, np.ndarray) else image.asnumpy())


def _batched(workers: int, samples: Sequence[Sequence[Any]]) -> List[Any]:
    """Return a batch, which a worker hands over through shared memory."""
    context = mx.Context("cpu_shared", 0) if workers else mx.cpu()
    return [mx.nd.array(array, context, array.dtype) for array in one_by_one.stacked(samples)]


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`."""
    loader = DataLoader(
        samples, batch_size=batch, last_batch="keep", num_workers=workers, timeout=TIMEOUT,
        batchify_fn=functools.partial(_batched, workers),
    )  # fmt: skip
    pool = loader._worker_pool
    if pool:
        # MXNet would kill the workers. A worker that dies while handing over a batch keeps the
        # queue's lock, and ending the pool would wait for that lock for ever.
        pool.terminate = pool.close
    try:
        for arrays in loader:
            yield [array.asnumpy() for array in arrays]
    finally:
        if pool:
            pool.close()
            last = time.monotonic() + TIMEOUT
            while any(each.exitcode is None for each in pool._pool) and time.monotonic() < last:
                time.sleep(0.002)
            del pool.terminate


load, settings = one_by_one.loader_of(
    Images,
    batches,
    loader="mxnet.gluon.data.DataLoader",
    decoder="mxnet.image.imdecode, OpenCV",
    transforms="mxnet.image",
    interpolation="OpenCV: by area where it shrinks, else bilinear",
)
