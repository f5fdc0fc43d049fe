"""Images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and ``val/CLASS/NAME.JPEG``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from ...files.whole_files import write_whole_bytes
from . import pictures
from .folders import SPLITS, claim, held_out, write_manifest

#: Most classes, as in ImageNet.
_MOST_CLASSES = 1000


class _Image(NamedTuple):
    """Facts of one image; ``digest``: SHA-256 in hexadecimal."""

    path: str
    digest: str
    size: int


def make(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Make ``images`` images in ``folder`` and return a summary.
    Raises ConfigError for a folder with content, and OSError."""
    claim(folder)

    def make_image(number: int, name: str) -> _Image:
        content = pictures.make(seed, number).content
        write_whole_bytes(folder / name, content)
        return _Image(name, hashlib.sha256(content).hexdigest(), len(content))

    # Pillow and numpy release the interpreter lock.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = sorted(pool.map(make_image, range(images), names(images)))
    lines = "".join(f"{image.path} {image.digest}\n" for image in found)
    made = {
        **{split: sum(image.path.startswith(split) for image in found) for split in SPLITS},
        "classes": len({image.path.split("/")[1] for image in found}),
        "bytes": sum(image.size for image in found),
        "digest": hashlib.sha256(lines.encode()).hexdigest(),
    }
    libraries = {name: version(name) for name in ("pillow", "numpy")}
    write_manifest(folder, {"images": images, "seed": seed, **libraries}, made)
    return made


def names(images: int) -> Iterator[str]:
    """Yield the path of each image below the folder; training images come first."""
    validating = held_out(images)
    classes = min(_MOST_CLASSES, validating)
    for number in range(images):
        split, position = SPLITS[0], number
        if number >= images - validating:
            split, position = SPLITS[1], number - (images - validating)
        label = f"n{position % classes:08d}"
        yield f"{split}/{label}/{label}_{number}.JPEG"
