"""Images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and ``val/CLASS/NAME.JPEG``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...files.whole_files import write_whole_bytes
from . import pictures
from .folders import claim, sizes, write_manifest

#: Most classes, as in ImageNet.
_MOST_CLASSES = 1000


def make(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Make ``images`` images in ``folder`` and return a summary.
    Raises ConfigError for a folder with content, and OSError."""
    claim(folder)

    def make_image(number: int, name: str) -> tuple[str, int]:
        content = pictures.make(seed, number)
        write_whole_bytes(folder / name, content)
        return f"{name} {hashlib.sha256(content).hexdigest()}\n", len(content)

    # Pillow and numpy release the interpreter lock.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = sorted(pool.map(make_image, range(images), names(images)))
    lines = "".join(line for line, _ in found)
    made = {
        **sizes(images),
        "classes": len({name.split("/")[1] for name in names(images)}),
        "bytes": sum(size for _, size in found),
        "digest": hashlib.sha256(lines.encode()).hexdigest(),
    }
    write_manifest(folder, made)
    return made


def names(images: int) -> Iterator[str]:
    """Yield the path of each image below the folder; training images come first."""
    number, counts = 0, sizes(images)
    classes = min(_MOST_CLASSES, counts["val"])
    for split, count in counts.items():
        for position in range(count):
            label = f"n{position % classes:08d}"
            yield f"{split}/{label}/{label}_{number}.JPEG"
            number += 1
