"""Made-up data in a folder: images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and
``val/CLASS/NAME.JPEG``, or tokens in ``train.bin`` and ``val.bin`` for language models, with the
vocabulary that BERT's marks need.

Tokens follow Zipf's law: the second is drawn half as often as the first, the third a third as
often. Nothing else can be learned.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ...config.validation import ConfigError
from ...files.whole_files import write_whole
from . import pictures

SPLITS = ("train", "val")
#: Summary of a folder, written last. The harness identifies data sets by its digest.
MANIFEST = "framebench-data.json"
#: Most classes, as in ImageNet.
_MOST_CLASSES = 1000
#: First tokens, at the positions that they have in BERT's vocabularies.
_MARKS = ("[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_VOCABULARY = (*_MARKS, *(f"word{n}" for n in range(5000)))
#: Tokens drawn at a time.
_PIECE = 1 << 20


def make_images(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Make ``images`` images in ``folder`` and return a summary.
    Raises ConfigError for a folder with content, and OSError."""
    _claim(folder)

    def make_image(number: int, name: str) -> tuple[str, int]:
        content = pictures.make(seed, number)
        write_whole(folder / name, content)
        return f"{name} {hashlib.sha256(content).hexdigest()}\n", len(content)

    # Pillow and numpy release the interpreter lock.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = sorted(pool.map(make_image, range(images), image_names(images)))
    lines = "".join(line for line, _ in found)
    made = {
        **_sizes(images),
        "classes": len({name.split("/")[1] for name in image_names(images)}),
        "bytes": sum(size for _, size in found),
        "digest": hashlib.sha256(lines.encode()).hexdigest(),
    }
    _write_manifest(folder, made)
    return made


def image_names(images: int) -> Iterator[str]:
    """Yield the path of each image below the folder; training images come first."""
    number, counts = 0, _sizes(images)
    classes = min(_MOST_CLASSES, counts["val"])
    for split, count in counts.items():
        for position in range(count):
            label = f"n{position % classes:08d}"
            yield f"{split}/{label}/{label}_{number}.JPEG"
            number += 1


def make_tokens(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Make ``count`` tokens in ``folder`` and return a summary.
    Raises ConfigError for a folder with content, and OSError."""
    _claim(folder)
    digest = hashlib.sha256()
    for number, (split, size) in enumerate(_sizes(count).items()):
        content = _draw(np.random.RandomState([seed, number]), size)
        digest.update(content)
        write_whole(folder / f"{split}.bin", content)
        declared = {"dtype": "uint16", "vocabulary": len(_VOCABULARY)}
        write_whole(folder / f"{split}.json", json.dumps(declared) + "\n")
    write_whole(folder / "vocab.txt", "".join(f"{token}\n" for token in _VOCABULARY))
    made = {**_sizes(count), "vocabulary": len(_VOCABULARY), "digest": digest.hexdigest()}
    _write_manifest(folder, made)
    return made


def _draw(random: np.random.RandomState, count: int) -> bytes:
    """Return ``count`` tokens as little-endian uint16."""
    weights = 1 / np.arange(1, len(_VOCABULARY) - len(_MARKS) + 1)
    chances = weights / weights.sum()
    pieces = (
        random.choice(len(weights), min(_PIECE, count - first), p=chances) + len(_MARKS)
        for first in range(0, count, _PIECE)
    )
    return b"".join(piece.astype("<u2").tobytes() for piece in pieces)


def _sizes(count: int) -> dict[str, int]:
    """Return the samples of each split: one in ten is for validation, at least one."""
    validating = max(1, count // 10)
    return dict(zip(SPLITS, (count - validating, validating), strict=True))


def _claim(folder: Path) -> None:
    """Make an empty folder. Raises ConfigError for a folder with content."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(
            f"--folder: found {folder}, which holds files; allowed: a folder that is empty or not "
            "there"
        )


def _write_manifest(folder: Path, made: dict[str, Any]) -> None:
    write_whole(folder / MANIFEST, json.dumps({"made": made}, indent=1) + "\n")
