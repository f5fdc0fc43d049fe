"""A data set in ImageNet's layout: ``train/CLASS/NAME.JPEG``, ``val/CLASS/NAME.JPEG``, a manifest.

1. The manifest says what is asked for, before the first picture is there.
2. Each picture is written whole, or not at all; those that are there already are kept.
3. The manifest says what was made: numbers, means, and a digest of all files.

A call that was ended goes on where it was. A folder with anything else in it is left alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from ..files.whole_files import write_whole, write_whole_bytes
from . import pictures

FORMAT = "framebench-data-1"
MANIFEST = "framebench-data.json"
SPLITS = ("train", "val")
#: What is asked for where nobody says.
IMAGES = 2000
#: One image of so many is kept for validation; there are at most so many classes, as of ImageNet.
_HELD_OUT, _MOST_CLASSES = 10, 1000


class Refused(Exception):
    """The data set cannot be made there; the message says why, and what is allowed."""


class _Made(NamedTuple):
    """Of one file; ``digest``: SHA-256 in hexadecimal."""

    path: str
    digest: str
    size: int
    width: int
    height: int


def make(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Make so many ``images`` in ``folder`` and return the manifest. Raises :class:`Refused` where
    there is something else, and OSError."""
    if images < 2:
        raise Refused(f"images: found {images}; allowed: 2 or more, one for each of {SPLITS}")
    asked = {
        "images": images,
        "seed": seed,
        "pillow": version("pillow"),
        "numpy": version("numpy"),
    }
    wanted = dict(names(images))
    _claim(folder, asked, wanted)
    with ProcessPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        work = partial(_one, folder, seed)
        found = list(pool.map(work, wanted.values(), wanted, chunksize=16))
    manifest = {"format": FORMAT, "asked": asked, "made": _summary(found)}
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return manifest


def names(images: int) -> Iterator[tuple[str, int]]:
    """The path of each picture below the folder, and its number: the first are for training."""
    held_out = max(1, images // _HELD_OUT)
    classes = min(_MOST_CLASSES, held_out)
    for number in range(images):
        in_training = number < images - held_out
        split, own = SPLITS[not in_training], number % classes
        if not in_training:
            own = (number - (images - held_out)) % classes
        label = f"n{own:08d}"
        yield f"{split}/{label}/{label}_{number}.JPEG", number


def _one(folder: Path, seed: int, number: int, name: str) -> _Made:
    path = folder / name
    if path.exists():
        content = path.read_bytes()
        with Image.open(io.BytesIO(content)) as image:
            width, height = image.size
    else:
        content, width, height = pictures.make(seed, number)
        write_whole_bytes(path, content)
    return _Made(name, hashlib.sha256(content).hexdigest(), len(content), width, height)


def _summary(found: list[_Made]) -> dict[str, Any]:
    lines = "".join(f"{one.path} {one.digest}\n" for one in sorted(found))
    count = len(found)
    return {
        **{split: sum(one.path.startswith(f"{split}/") for one in found) for split in SPLITS},
        "classes": len({one.path.split("/")[1] for one in found}),
        "bytes": sum(one.size for one in found),
        "mean_bytes": round(sum(one.size for one in found) / count),
        "mean_width": round(sum(one.width for one in found) / count, 1),
        "mean_height": round(sum(one.height for one in found) / count, 1),
        "digest": hashlib.sha256(lines.encode()).hexdigest(),
    }


def _claim(folder: Path, asked: Mapping[str, Any], wanted: Mapping[str, int]) -> None:
    """Make the folder ours. Raises :class:`Refused` for one that is not."""
    manifest = folder / MANIFEST
    entries = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not entries:
        text = json.dumps({"format": FORMAT, "asked": asked, "made": None}, indent=1)
        write_whole(manifest, text + "\n")
        return
    if MANIFEST not in entries:
        raise Refused(
            f"data: found {folder}, which holds {entries[0]}; allowed: a folder that is empty, or "
            "not there, or one that make_data has begun"
        )
    before = _asked_before(manifest)
    if before != asked:
        keys = [key for key in asked if before.get(key) != asked[key]]
        was = ", ".join(f"{key} {before.get(key)}" for key in keys)
        now = ", ".join(f"{key} {asked[key]}" for key in keys)
        raise Refused(
            f"data: found {folder}, which holds pictures of {was}; asked for: {now}; allowed: the "
            "same, or another folder"
        )
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix()
        if path.name.startswith("."):
            path.unlink()  # a picture that was not written to its end
        elif name not in wanted and name != MANIFEST:
            raise Refused(
                f"data: found {path}, which make_data did not make; allowed: its pictures alone"
            )


def _files(folder: Path) -> Iterator[Path]:
    for place, _, files in os.walk(folder):
        yield from (Path(place, name) for name in files)


def _asked_before(manifest: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        if content["format"] == FORMAT:
            asked: Mapping[str, Any] = content["asked"]
            return asked
    except (ValueError, KeyError, TypeError):
        pass
    raise Refused(f"data: found {manifest}, which is no manifest of make_data")
