"""Images from files: DataLoader with worker processes, Pillow's decoder, torchvision's transforms,
as PyTorch's own ImageNet example has them."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Iterator, Sequence

import torch
from harness.loader import DEVIATION, MEAN, TIMEOUT, one_by_one
from torch.utils.data import DataLoader

from .models.own_model import torchvision_models

torchvision_models()  # allows the import of torchvision next to a PyTorch for CPUs
functional: Any = importlib.import_module("torchvision.transforms.v2.functional")


class Images(one_by_one.ImageSamples):
    """Images of a request, decoded by Pillow and transformed by torchvision, as tensors."""

    def resized(self, image: Any, height: int, width: int) -> Any:
        return functional.resize(image, [height, width], functional.InterpolationMode.BILINEAR)

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        return functional.crop(image, top, left, height, width)

    def mirrored(self, image: Any) -> Any:
        return functional.horizontal_flip(image)

    def normalised(self, image: Any) -> Any:
        whole = functional.pil_to_tensor(image)  # channels are last in memory
        values = functional.to_dtype(whole, torch.float32, scale=True)
        return functional.normalize(values, MEAN, DEVIATION).permute(1, 2, 0)


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`."""
    loader: Any = DataLoader(
        samples,
        batch_size=batch,
        num_workers=workers,
        pin_memory=accelerator == "cuda",
        timeout=TIMEOUT if workers else 0,
    )
    for tensors in loader:
        yield [tensor.numpy() for tensor in tensors]


load, common_settings = one_by_one.loader_of(
    Images, batches, loader="torch.utils.data.DataLoader", transforms="torchvision.transforms.v2"
)


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {**common_settings(accelerator), "pin_memory": accelerator == "cuda"}
