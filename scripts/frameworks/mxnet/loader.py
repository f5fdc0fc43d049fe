"""Images from files: gluon.data.DataLoader with worker processes, and mxnet.image, which is OpenCV,
as Gluon's own image classification has them; from RecordIO by gluon.data.RecordFileDataset."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Sequence, Tuple

import mxnet as mx
import numpy as np
from harness.loader import (
    DEVIATION,
    FOLDER,
    MEAN,
    RECORDIO,
    Loads,
    centre,
    crop,
    is_flipped,
    one_by_one,
)
from harness.loader.jpeg import check_whole
from harness.loader.workers import TIMEOUT
from mxnet.gluon.data import DataLoader, Dataset, RecordFileDataset

FORMATS = (FOLDER, RECORDIO)


def decode(content: bytes) -> Any:
    """The bytes of a file as an array of uint8 (height, width, 3). OpenCV fills up what a truncated
    file lacks, and says nothing."""
    return mx.image.imdecode(check_whole(content))


class Images(Dataset):
    """The samples that are asked for, one by one."""

    def __init__(self, asked: Loads) -> None:
        self._asked = asked
        self._mean, self._deviation = (np.array(c, np.float32) for c in (MEAN, DEVIATION))
        files = {os.path.dirname(path) for path in asked.paths} if asked.format == RECORDIO else ()
        self._records = {file: RecordFileDataset(file) for file in files}

    def __len__(self) -> int:
        return len(self._asked.paths)

    def _read(self, number: int) -> Tuple[bytes, int]:
        path = self._asked.paths[number]
        if not self._records:
            with open(path, "rb") as file:
                return file.read(), int(self._asked.labels[number])
        record, place = os.path.split(path)
        header, content = mx.recordio.unpack(self._records[record][int(place)])
        return content, int(header.label)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        asked = self._asked
        content, label = self._read(number)
        image = decode(content)
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
        levels = image.asnumpy().astype(np.float32)
        levels /= np.float32(255)  # in place: no pass over memory of its own for each
        levels -= self._mean
        levels /= self._deviation
        return levels, label, number


def _interpolation(height: int, width: int, to_height: int, to_width: int) -> int:
    """OpenCV's number of it: 3, by area, where an image shrinks, 1, bilinear, where it grows."""
    return 3 if to_height * to_width < height * width else 1


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """See :data:`harness.loader.one_by_one.Batches`."""
    loader = DataLoader(
        samples, batch_size=batch, last_batch="keep", num_workers=workers, timeout=TIMEOUT
    )
    for given in loader:
        yield [array.asnumpy() for array in given]


load, load_tokens = one_by_one.loading(Images, batches)


def pixels(content: bytes) -> Any:
    """Of a JPEG file; see :class:`harness.loader.Loading`."""
    return decode(content).asnumpy()


def settings(accelerator: str) -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "mxnet.gluon.data.DataLoader",
        "workers_are": "processes",
        "decoder": "mxnet.image.imdecode, OpenCV",
        "transforms": "mxnet.image",
        "interpolation": "OpenCV: by area where it shrinks, else bilinear",
    }
