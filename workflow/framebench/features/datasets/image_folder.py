"""Images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and ``val/CLASS/NAME.JPEG``.
Alternatively the same images as records of TensorFlow or MXNet. Existing images are kept."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from core import bounded
from PIL import Image

from ...files.whole_files import write_whole_bytes
from . import pictures, record_files
from .folders import SPLITS, DataSetError, claimed, write_manifest

#: Default number of images.
IMAGES = 2000
#: One of this many images is for validation; the most classes, as in ImageNet.
_HELD_OUT, _MOST_CLASSES = 10, 1000
FOLDER = "folder"
FORMATS = (FOLDER, *record_files.FORMATS)


class _Made(NamedTuple):
    """Facts of one image; ``digest``: SHA-256 in hexadecimal."""

    path: str
    digest: str
    size: int
    width: int
    height: int


def make(folder: Path, images: int, seed: int, form: str = FOLDER) -> dict[str, Any]:
    """Make ``images`` images in ``folder``, in one of FORMATS, and return the manifest.
    Raises :class:`DataSetError` for a folder with other content, and OSError."""
    if images < 2:
        raise DataSetError(f"images: found {images}; allowed: 2 or more, one for each of {SPLITS}")
    asked = {
        "images": images,
        "seed": seed,
        "pillow": version("pillow"),
        "numpy": version("numpy"),
        **({"format": form} if form != FOLDER else {}),
    }
    wanted = dict(names(images))
    files = wanted if form == FOLDER else record_files.files(form, wanted)
    with claimed(folder, asked, files):
        workers = len(os.sched_getaffinity(0))
        with ProcessPoolExecutor(workers, initializer=_end_with_parent) as pool:
            if form == FOLDER:
                work = partial(_image, folder, seed)
                found = list(pool.map(work, wanted.values(), wanted, chunksize=16))
            else:
                found = list(_recorded(folder, form, wanted, pool, seed))
        return write_manifest(folder, asked, _summary(found))


def names(images: int) -> Iterator[tuple[str, int]]:
    """Yield the path of each image below the folder, and its number; training images come first."""
    held_out = max(1, images // _HELD_OUT)
    classes = min(_MOST_CLASSES, held_out)
    for number in range(images):
        in_training = number < images - held_out
        split, own = SPLITS[not in_training], number % classes
        if not in_training:
            own = (number - (images - held_out)) % classes
        label = f"n{own:08d}"
        yield f"{split}/{label}/{label}_{number}.JPEG", number


def _end_with_parent() -> None:
    """End a worker when its parent ends.
    Otherwise it would wait forever, and hold the folder's lock, which it shares."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker"

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _image(folder: Path, seed: int, number: int, name: str) -> _Made:
    path = folder / name
    if path.exists():
        content = bounded.read_bytes(path)
        with Image.open(io.BytesIO(content)) as image:
            width, height = image.size
    else:
        content, width, height = pictures.make(seed, number)
        write_whole_bytes(path, content)
    return _Made(name, hashlib.sha256(content).hexdigest(), len(content), width, height)


def _recorded(
    folder: Path, form: str, wanted: Mapping[str, int], pool: ProcessPoolExecutor, seed: int
) -> Iterator[_Made]:
    """Write all record files anew, and yield the facts of each image."""
    for file, members in record_files.parts(form, wanted).items():
        work = partial(pictures.make, seed)
        given = pool.map(work, [wanted[name] for name in members], chunksize=8)
        with record_files.writing(form, folder / file) as add:
            for name, (content, width, height) in zip(members, given, strict=True):
                add(int(name.split("/")[1][1:]), content)
                digest = hashlib.sha256(content).hexdigest()
                yield _Made(name, digest, len(content), width, height)


def _summary(found: list[_Made]) -> dict[str, Any]:
    lines = "".join(f"{made.path} {made.digest}\n" for made in sorted(found))
    count = len(found)
    return {
        **{split: sum(made.path.startswith(f"{split}/") for made in found) for split in SPLITS},
        "classes": len({made.path.split("/")[1] for made in found}),
        "bytes": sum(made.size for made in found),
        "mean_bytes": round(sum(made.size for made in found) / count),
        "mean_width": round(sum(made.width for made in found) / count, 1),
        "mean_height": round(sum(made.height for made in found) / count, 1),
        "digest": hashlib.sha256(lines.encode()).hexdigest(),
    }
