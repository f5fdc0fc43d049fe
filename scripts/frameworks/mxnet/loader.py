"""Images from files: gluon.data.DataLoader with worker processes, and mxnet.image, which is OpenCV,
as Gluon's own image classification has them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

import mxnet as mx
import numpy as np
from harness.loader import (
    DEVIATION,
    MEAN,
    TIMEOUT,
    Loaded,
    Loads,
    centre,
    check_whole,
    crop,
    is_flipped,
)
from mxnet.gluon.data import DataLoader, Dataset


def decode(path: str) -> Any:
    """A file as an array of uint8 (height, width, 3). OpenCV fills up what a truncated file
    lacks, and says nothing."""
    with open(path, "rb") as file:
        content = check_whole(file.read())
    return mx.image.imdecode(content)


class Images(Dataset):
    """The samples that are asked for, one by one."""

    def __init__(self, asked: Loads) -> None:
        self._asked = asked
        self._mean, self._deviation = (np.array(c, np.float32) for c in (MEAN, DEVIATION))

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        asked = self._asked
        image, label = decode(asked.paths[number]), int(asked.labels[number])
        if asked.decodes_only:
            return image[0, 0].asnumpy().astype(np.float32), label, number
        height, width, size = image.shape[0], image.shape[1], asked.size
        if asked.draws is None:
            tall, wide, top, left = centre(height, width, size)
            image = mx.image.imresize(image, wide, tall, _interpolation(height, width, tall, wide))
            image = mx.image.fixed_crop(image, left, top, size, size)
        else:
            draws = asked.draws[number]
            top, left, tall, wide = crop(height, width, draws)
            how = _interpolation(tall, wide, size, size)
            image = mx.image.fixed_crop(image, left, top, wide, tall, (size, size), how)
            if is_flipped(draws):
                image = image[:, ::-1]
        levels = image.asnumpy().astype(np.float32) / np.float32(255)
        return (levels - self._mean) / self._deviation, label, number


def _interpolation(height: int, width: int, to_height: int, to_width: int) -> int:
    """OpenCV's number of it: 3, by area, where an image shrinks, 1, bilinear, where it grows."""
    return 3 if to_height * to_width < height * width else 1


def load(asked: Loads, accelerator: str) -> Iterator[Loaded]:
    """See :meth:`harness.loader.Loading.load`."""
    loader = DataLoader(
        Images(asked),
        batch_size=asked.batch,
        last_batch="keep",
        num_workers=asked.workers,
        timeout=TIMEOUT,
    )
    for images, labels, numbers in loader:
        yield Loaded(images.asnumpy(), labels.asnumpy(), numbers.asnumpy())


def pixels(path: str) -> Any:
    """See :meth:`harness.loader.Loading.decode_file`."""
    return decode(path).asnumpy()


def settings(accelerator: str) -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "mxnet.gluon.data.DataLoader",
        "workers_are": "processes",
        "decoder": "mxnet.image.imdecode, OpenCV",
        "transforms": "mxnet.image",
        "interpolation": "OpenCV: by area where it shrinks, else bilinear",
    }
