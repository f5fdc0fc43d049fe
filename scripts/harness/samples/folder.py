"""Images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and ``val/CLASS/NAME.JPEG``."""

from __future__ import annotations

import hashlib
import os
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from core import bounded

from harness.adapter import Mismatch

TRAIN, VALIDATION = "train", "val"
SUFFIXES = (".jpeg", ".jpg")
#: Name of make-data's manifest.
MANIFEST = "framebench-data.json"
#: Vocabulary of a folder's tokens.
VOCABULARY = "vocab.txt"
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
