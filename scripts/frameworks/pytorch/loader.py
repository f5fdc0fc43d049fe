"""Images from files: DataLoader with worker processes, Pillow's decoder, torchvision's transforms,
as PyTorch's own ImageNet example has them."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Iterator, Tuple

import numpy as np
import PIL
import torch
from harness.loader import DEVIATION, MEAN, TIMEOUT, Loaded, Loads, centre, crop, is_flipped
from PIL import Image, features
from torch.utils.data import DataLoader, Dataset

from .sources.torchvision.cnn import models

models()  # whose import needs help beside a PyTorch for CPUs
functional: Any = importlib.import_module("torchvision.transforms.v2.functional")


def decode(path: str) -> Any:
    """A file as an RGB image of Pillow."""
    with Image.open(path) as image:
        return image.convert("RGB")


class Images(Dataset):
    """The samples that are asked for, one by one."""

    def __init__(self, asked: Loads) -> None:
        self._asked = asked

    def __len__(self) -> int:
        return len(self._asked.paths)

    def __getitem__(self, number: int) -> Tuple[Any, int, int]:
        asked = self._asked
        image, label = decode(asked.paths[number]), int(asked.labels[number])
        if asked.decodes_only:
            return torch.tensor(image.getpixel((0, 0)), dtype=torch.float32), label, number
        size, bilinear = asked.size, functional.InterpolationMode.BILINEAR
        if asked.draws is None:
            tall, wide, top, left = centre(image.height, image.width, size)
            image = functional.resize(image, [tall, wide], bilinear)
            image = functional.crop(image, top, left, size, size)
        else:
            draws = asked.draws[number]
            box = crop(image.height, image.width, draws)
            image = functional.resized_crop(image, *box, [size, size], bilinear)
            if is_flipped(draws):
                image = functional.horizontal_flip(image)
        whole = functional.pil_to_tensor(image)  # whose channels lie last in memory
        values = functional.to_dtype(whole, torch.float32, scale=True)
        return functional.normalize(values, MEAN, DEVIATION).permute(1, 2, 0), label, number


def load(asked: Loads, accelerator: str) -> Iterator[Loaded]:
    """See :meth:`harness.loader.Loading.load`."""
    loader = DataLoader(
        Images(asked),
        batch_size=asked.batch,
        num_workers=asked.workers,
        pin_memory=accelerator == "cuda",
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
        "loader": "torch.utils.data.DataLoader",
        "workers_are": "processes",
        "pin_memory": accelerator == "cuda",
        "decoder": f"Pillow {PIL.__version__}, libjpeg {features.version_codec('jpg')}",
        "transforms": "torchvision.transforms.v2",
        "interpolation": "bilinear, antialiased",
    }
