"""Images from files: paddle.io.DataLoader with worker processes, Pillow's decoder, the functions of
paddle.vision.transforms, as Paddle's own image classification has them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

import numpy as np
import paddle
import PIL
from harness.loader import DEVIATION, MEAN, TIMEOUT, Loaded, Loads, centre, crop, is_flipped
from paddle.vision.transforms import functional
from PIL import Image, features


def decode(path: str) -> Any:
    """A file as an RGB image of Pillow."""
    with Image.open(path) as image:
        return image.convert("RGB")


class Images(paddle.io.Dataset):
    """The samples that are asked for, one by one, as numpy arrays: a worker process makes no tensor
    of its own."""

    def __init__(self, asked: Loads) -> None:
        super().__init__()
        self._asked = asked

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        asked = self._asked
        image, label = decode(asked.paths[number]), int(asked.labels[number])
        if asked.decodes_only:
            return np.array(image.getpixel((0, 0)), np.float32), label, number
        size = asked.size
        if asked.draws is None:
            tall, wide, top, left = centre(image.height, image.width, size)
            image = functional.resize(image, (tall, wide), "bilinear")
            image = functional.crop(image, top, left, size, size)
        else:
            draws = asked.draws[number]
            image = functional.crop(image, *crop(image.height, image.width, draws))
            image = functional.resize(image, (size, size), "bilinear")
            if is_flipped(draws):
                image = functional.hflip(image)
        levels = np.asarray(image, np.float32) / np.float32(255)
        return functional.normalize(levels, MEAN, DEVIATION, data_format="HWC"), label, number


def load(asked: Loads, accelerator: str) -> Iterator[Loaded]:
    """See :meth:`harness.loader.Loading.load`."""
    loader = paddle.io.DataLoader(
        Images(asked),
        batch_size=asked.batch,
        num_workers=asked.workers,
        places=paddle.CPUPlace(),
        return_list=True,
        timeout=TIMEOUT if asked.workers else 0,
    )
    for images, labels, numbers in loader:
        yield Loaded(images.numpy(), labels.numpy(), numbers.numpy())


def pixels(path: str) -> Any:
    """See :meth:`harness.loader.Loading.decode_file`."""
    return np.asarray(decode(path))


def settings(accelerator: str) -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "paddle.io.DataLoader",
        "workers_are": "processes",
        "decoder": f"Pillow {PIL.__version__}, libjpeg {features.version_codec('jpg')}",
        "transforms": "paddle.vision.transforms",
        "interpolation": "bilinear, antialiased",
    }
