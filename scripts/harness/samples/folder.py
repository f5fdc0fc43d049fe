"""Images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and ``val/CLASS/NAME.JPEG``; order and
crops of samples, the same in every framework by the seed; and the check that a loader gives each
sample once, whole and in this order. Errors name the image."""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from core import bounded

from harness.adapter import Mismatch
from harness.loader import DRAWS, Batch, Loading, Loads, content_of, extents_of, whole_image
from harness.report import error_text

TRAIN, VALIDATION = "train", "val"
SUFFIXES = (".jpeg", ".jpg")
#: Name of make-data's manifest.
MANIFEST = "framebench-data.json"
#: Vocabulary of a folder's tokens.
VOCABULARY = "vocab.txt"
#: Batches for each worker, and for the caller, after the last good batch, in which to look for the
#: image that broke the loader. Loaders prepare two batches per worker.
LOOKED_AT = 4
_REMEDY = "remove it from the data"


class BadData(Mismatch):
    """Raised for invalid data; the message names the file or folder."""


class Images(NamedTuple):
    """Images of a split, TRAIN or VALIDATION.

    ``paths``: below ``root``, sorted. ``labels``: index of each image's class among ``classes``."""

    root: str
    classes: List[str]
    paths: List[str]
    labels: List[int]


def scan(root: str, split: str) -> Images:
    """Return the images of a split.

    Raises :class:`BadData` where the folder or images are missing, and for any file that is not an
    image."""
    classes = _classes(root, TRAIN) or _classes(root, split)
    paths: List[str] = []
    labels: List[int] = []
    for name in _entries(root, split):
        inner = f"{split}/{name}"
        if not os.path.isdir(os.path.join(root, inner)):
            raise BadData(f"{inner}: is not the folder of a class; {_REMEDY}")
        if name not in classes:
            raise BadData(f"{inner}: is a class that {TRAIN} does not have; {_REMEDY}")
        images = [f"{inner}/{file}" for file in _entries(root, inner)]
        for path in images:
            if not path.lower().endswith(SUFFIXES):
                raise BadData(f"{path}: its suffix is none of {', '.join(SUFFIXES)}; {_REMEDY}")
        if not images:
            raise BadData(f"{inner}: is a class without an image; {_REMEDY}")
        paths += images
        labels += [classes.index(name)] * len(images)
    if not paths:
        raise BadData(f"{os.path.join(root, split)} holds no image")
    return Images(root, classes, paths, labels)


def identity(root: str) -> str:
    """Return twelve hexadecimal digits that identify a data set. Raises :class:`BadData`.

    They depend on all paths in its splits, the sizes of files other than images, the vocabulary,
    and make-data's digest."""
    digest = hashlib.sha256(_made_digest(root).encode())

    def add(*names: str) -> None:
        digest.update("\0".join([*names, ""]).encode("utf-8", "surrogateescape"))

    for split in (TRAIN, VALIDATION):
        if os.path.isdir(os.path.join(root, split)):
            inner = [f"{split}/{name}" for name in _entries(root, split)]
        else:
            inner = [name for name in _entries(root, "") if name.startswith(split)]
        for name in inner:
            path = os.path.join(root, name)
            is_folder = os.path.isdir(path)
            add(name, *(_entries(root, name) if is_folder else [str(os.path.getsize(path))]))
    vocabulary = os.path.join(root, VOCABULARY)
    if os.path.isfile(vocabulary):
        add(VOCABULARY, hashlib.sha256(bounded.read_bytes(vocabulary)).hexdigest())
    return digest.hexdigest()[:12]


def _made_digest(root: str) -> str:
    """Return the digest in make-data's manifest; "" without one."""
    try:
        return str(bounded.read_json(os.path.join(root, MANIFEST))["made"].get("digest", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def _classes(root: str, split: str) -> List[str]:
    """Return the folders in a split; none where it is missing."""
    folder = os.path.join(root, split)
    if not os.path.isdir(folder):
        return []
    return [name for name in _entries(root, split) if os.path.isdir(os.path.join(folder, name))]


def _entries(root: str, inner: str) -> List[str]:
    try:
        return sorted(os.listdir(os.path.join(root, inner)))
    except OSError as error:
        raise BadData(
            f"{os.path.join(root, inner)}: {error.strerror}; images lie in {TRAIN}/CLASS/NAME.JPEG "
            f"and {VALIDATION}/CLASS/NAME.JPEG"
        ) from None


def size_of(inputs: Sequence[Mapping[str, Any]]) -> Optional[int]:
    """Return the pixels of a side of a model's images, from its declared inputs; None for a model
    without images."""
    for declaration in inputs:
        shape = declaration["shape"]
        if declaration["name"] == "images" and len(shape) == 4 and shape[3] == 3:
            return int(shape[1])
    return None


def places_of(
    count: int, split: str, number: int, seed: int, rank: int, ranks: int, most: int = 0
) -> Any:
    """Return the indices of a rank's samples, of ``count``, in epoch ``number``, int64.

    They are shuffled in training, in order in validation; each sample goes to one rank, and all
    ranks get the same number. ``most``: samples of an epoch, 0 for all; the same in each epoch."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    chosen = np.random.RandomState([seed, 0]).permutation(count)[: most or count]
    chosen.sort()
    if split == TRAIN:
        np.random.RandomState([seed, 1 + number]).shuffle(chosen)
    each = len(chosen) // ranks
    return chosen[rank * each : (rank + 1) * each].astype(np.int64)


def loads(
    images: Images,
    places: Any,
    split: str,
    number: int,
    seed: int,
    batch: int,
    size: int,
    workers: int,
) -> Loads:
    """Return the request to a loader for the images at these ``places``, with the crops of this
    epoch. Raises :class:`BadData` where they are too few for a batch."""
    import numpy as np

    if len(places) < batch:
        raise BadData(
            f"{os.path.join(images.root, split)} has {len(places)} images for this rank, too few "
            f"for a batch of {batch}"
        )
    draws = None
    if split == TRAIN:
        first = int(places[0])
        draws = np.random.RandomState([seed, number, first]).uniform(size=(len(places), DRAWS))
    paths = [os.path.join(images.root, images.paths[index]) for index in places]
    labels = np.array([images.labels[index] for index in places], np.int64)
    return Loads(paths, labels, draws, batch, size, workers)


def each_once(loaded: Iterator[Batch], count: int, unit: str) -> Iterator[Tuple[int, Batch]]:
    """Yield the batches of a loader of ``count`` samples, each with the number of samples before
    it. ``unit``: name of the samples.

    Raises :class:`Mismatch` where the loader fails, or gives more or fewer samples."""
    done = 0
    try:
        for batch in loaded:
            before, done = done, done + len([*batch.values()][-1])
            if done > count:
                break
            yield before, batch
    except Exception as error:
        raise Mismatch(f"the loader failed after {done} {unit}: {error_text(error)}") from error
    if done != count:
        raise Mismatch(f"the loader returned {done} {unit} of {count}")


def batches(adapter: Loading, loads: Loads, root: str) -> Iterator[Batch]:
    """Yield all batches of images of the framework's loader.

    Raises :class:`BadData` for an image that broke the loader, and :class:`Mismatch` where the
    loader failed otherwise, or where samples are missing or in another order, which their labels
    show."""
    import numpy as np

    done = 0
    try:
        for before, batch in each_once(adapter.load(loads), len(loads.paths), "images"):
            done = before + len(batch["labels"])
            if not np.array_equal(np.asarray(batch["labels"]), loads.labels[before:done]):
                raise Mismatch(f"the loader returned other labels than those of {before} to {done}")
            yield batch
    except Mismatch as error:
        for path in loads.paths[done : done + loads.batch * LOOKED_AT * (loads.workers + 1)]:
            try:
                extents_of(whole_image(content_of(path)))
            except (OSError, ValueError) as broken:
                reason = f"{os.path.relpath(path, root)}: {error_text(broken)}"
                raise BadData(f"{reason}; remove it from the data") from error
        raise


def checked(adapter: Loading, loads: Loads, root: str) -> Dict[str, Any]:
    """Load all requested images once and check them.

    Returns their number, the CRC-32 of their paths, and the mean of their values, for the record.
    Raises what :func:`batches` raises, and :class:`Mismatch` for another shape."""
    import numpy as np

    count, total = 0, 0.0
    for batch in batches(adapter, loads, root):
        images, samples = np.asarray(batch["images"]), len(batch["labels"])
        shape = (samples, loads.size, loads.size, 3)
        if images.shape != shape or images.dtype != np.float32:
            raise Mismatch(
                f"the loader returned {images.dtype} {images.shape}, not float32 {shape}"
            )
        if not np.isfinite(images).all():
            raise Mismatch(f"the loader returned values that are not finite after {count} images")
        total += float(images.sum(dtype=np.float64))
        count += samples
    names = "".join(f"{os.path.relpath(path, root)}\0" for path in loads.paths)
    return {
        "images": count,
        "order_crc32": zlib.crc32(names.encode("utf-8", "surrogateescape")),
        "mean": total / (count * loads.size * loads.size * 3),
    }
