"""Images from files: gluon.data.DataLoader with worker processes, and mxnet.image, which is OpenCV,
as Gluon's own image classification has them."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import mxnet as mx
import numpy as np
from harness.loader import (
    DEVIATION,
    MEAN,
    TIMEOUT,
    Loads,
    centre,
    content_of,
    crop,
    is_flipped,
    one_by_one,
)
from harness.loader.encoded import whole_image
from mxnet.gluon.data import DataLoader, Dataset


def decode(content: bytes) -> Any:
    """Decode an image file to uint8 (height, width, 3). Raises ValueError for a truncated file,
    which OpenCV would fill up silently."""
    return mx.image.imdecode(whole_image(content))


@functools.lru_cache(maxsize=1)
def _normalization(shape: Tuple[int, ...]) -> Tuple[Any, Any]:
    """Return factor and offset of each value of an image. Broadcasting those of the channels takes
    several times as long."""
    deviation = np.array(DEVIATION)
    each = 1 / (255 * deviation), np.array(MEAN) / deviation
    scale, offset = (np.broadcast_to(values, shape).astype(np.float32) for values in each)
    return scale, offset


class Images(Dataset):
    """Images of a request before normalisation: an MXNet array of uint8 (height, width, 3), and
    whether it is mirrored. MXNet works on them while the next is read: :class:`_Batched` waits."""

    def __init__(self, loads: Loads) -> None:
        self._asked = loads

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        loads = self._asked
        label = int(loads.labels[number])
        image = decode(content_of(loads.paths[number]))
        if loads.decodes_only:
            return image[0, 0].asnumpy().astype(np.float32), label, number
        height, width, size = image.shape[0], image.shape[1], loads.size
        if loads.draws is None:
            tall, wide, top, left = centre(height, width, size)
            image = mx.image.imresize(image, wide, tall, _interpolation(height, width, tall, wide))
            return (mx.image.fixed_crop(image, left, top, size, size), False), label, number
        draws = loads.draws[number]
        top, left, tall, wide = crop(height, width, draws)
        how = _interpolation(tall, wide, size, size)
        image = mx.image.fixed_crop(image, left, top, wide, tall, (size, size), how)
        return (image, is_flipped(draws)), label, number


def _interpolation(height: int, width: int, to_height: int, to_width: int) -> int:
    """Return OpenCV's number of the interpolation: 3, by area, where an image shrinks, 1, bilinear,
    where it grows."""
    return 3 if to_height * to_width < height * width else 1


class _Batched:
    """Makes a batch of samples, in the worker; it is handed over through shared memory."""

    def __init__(self, workers: int) -> None:
        self._context = mx.Context("cpu_shared", 0) if workers else mx.cpu()

    def __call__(self, samples: Sequence[Sequence[Any]]) -> List[Any]:
        return [self._stacked(values) for values in zip(*samples)]

    def _stacked(self, values: Sequence[Any]) -> Any:
        if not isinstance(values[0], tuple):
            array = np.stack(values)
        else:
            array = np.empty((len(values), *values[0][0].shape), np.float32)
            scale, offset = _normalization(array.shape[1:])
            for (image, flipped), into in zip(values, array):
                levels = image.asnumpy()
                np.multiply(levels[:, ::-1] if flipped else levels, scale, out=into)
                into -= offset
        return mx.nd.array(array, self._context, array.dtype)


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`."""
    loader = DataLoader(
        samples, batch_size=batch, last_batch="keep", num_workers=workers, timeout=TIMEOUT,
        batchify_fn=_Batched(workers),
    )  # fmt: skip
    with _workers_that_end(loader._worker_pool):
        for arrays in loader:
            yield [array.asnumpy() for array in arrays]


@contextlib.contextmanager
def _workers_that_end(pool: Any) -> Iterator[None]:
    """Let the workers of a pool end by themselves, behind what they were given, also where MXNet's
    iterator ends the pool because of an error.

    ``Pool.terminate`` kills workers. One that dies while it hands a batch over keeps the lock of
    the queue, and whoever ends the pool waits for that lock for ever."""
    if pool is None:
        yield
        return
    pool.terminate = pool.close
    try:
        yield
    finally:
        pool.close()
        last = time.monotonic() + TIMEOUT
        while any(worker.exitcode is None for worker in pool._pool) and time.monotonic() < last:
            time.sleep(0.002)
        del pool.terminate


load, load_tokens = one_by_one.loading(Images, batches)


def pixels(content: bytes) -> Any:
    """Decode a JPEG file, see :class:`harness.loader.Loading`."""
    return decode(content).asnumpy()


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "mxnet.gluon.data.DataLoader",
        "workers_are": "processes",
        "decoder": "mxnet.image.imdecode, OpenCV",
        "transforms": "mxnet.image",
        "interpolation": "OpenCV: by area where it shrinks, else bilinear",
    }
