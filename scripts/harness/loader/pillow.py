"""Images decoded by Pillow, one by one: for loaders whose workers are Python processes.

A framework adds its loader, and transforms where it has some.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Sequence

import PIL
from PIL import Image, features

from harness.loader import Loads
from harness.loader.one_by_one import Batches, ImageSamples, LoadImages, LoadTokens, loading


class PillowImages(ImageSamples):
    """Images of Pillow, transformed by Pillow; a framework may override the transforms."""

    def decoded(self, path: str) -> Any:
        with Image.open(path) as image:
            return image.convert("RGB")

    def extents(self, image: Any) -> Sequence[int]:
        return image.height, image.width

    def resized(self, image: Any, height: int, width: int) -> Any:
        return image.resize((width, height), Image.Resampling.BILINEAR)

    def cut(self, image: Any, top: int, left: int, height: int, width: int) -> Any:
        return image.crop((left, top, left + width, top + height))

    def mirrored(self, image: Any) -> Any:
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


class Loader(NamedTuple):
    """Functions of a framework's module ``loader``; see :class:`harness.loader.Loading`."""

    load: LoadImages
    load_tokens: LoadTokens
    settings: Callable[[str], Dict[str, Any]]


def loader_of(
    images: Callable[[Loads], Any], batches: Batches, name: str, transforms: str
) -> Loader:
    """Return the loader of ``images`` and tokens, see :func:`harness.loader.one_by_one.loading`.
    ``name``, ``transforms``: the framework's, for the record."""

    def settings(accelerator: str) -> Dict[str, Any]:
        return {
            "loader": name,
            "workers_are": "processes",
            "transforms": transforms,
            "decoder": f"Pillow {PIL.__version__}, libjpeg {features.version_codec('jpg')}",
            "interpolation": "bilinear, antialiased",
        }

    return Loader(*loading(images, batches), settings)
