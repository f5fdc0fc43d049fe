"""Made-up data in a folder: images in ImageNet's layout, ``train/CLASS/NAME.JPEG`` and
``val/CLASS/NAME.JPEG``, or tokens in ``train.bin`` and ``val.bin`` for language models, with a
vocabulary that has BERT's special tokens.

Tokens are drawn independently by Zipf's law, the n-th 1/n times as often as the first: a model can
learn only these frequencies."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ...config.validation import ConfigError
from ...files.whole_files import write_whole

SPLITS = ("train", "val")
#: Summary of a folder, written last. The harness identifies data sets by its digest.
MANIFEST = "framebench-data.json"
#: Most classes, as in ImageNet.
_MOST_CLASSES = 1000
#: Special tokens, at the positions that they have in BERT's vocabularies.
_MARKS = ("[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_VOCABULARY = (*_MARKS, *(f"word{n}" for n in range(5000)))
#: Tokens drawn at a time.
_PIECE = 1 << 20
Array = np.ndarray[Any, np.dtype[np.float32]]

#: Sizes (width, height) and their frequencies.
SIZES = {
    (500, 375): 0.55,
    (375, 500): 0.13,
    (500, 333): 0.15,
    (333, 500): 0.05,
    (500, 500): 0.04,
    (640, 480): 0.04,
    (400, 300): 0.04,
}
#: Amplitude of an octave relative to the next coarser one: in natural images, amplitudes fall with
#: the frequency.
_FALL = 0.62
_EDGES = 3


def make_images(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Make ``images`` images in ``folder`` and return a summary.
    Raises ConfigError for a folder with content, and OSError."""
    _claim(folder)

    def make_image(number: int, name: str) -> tuple[str, int]:
        content = draw_image(seed, number)
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
    write_whole(folder / MANIFEST, json.dumps({"made": made}, indent=1) + "\n")
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
    write_whole(folder / MANIFEST, json.dumps({"made": made}, indent=1) + "\n")
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
    """Return the number of samples of each split: a tenth for validation, at least one."""
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


def draw_image(seed: int, number: int) -> bytes:
    """Return the JPEG file of the image with index ``number``, drawn from ``seed``.
    The same versions of numpy and Pillow give the same bytes."""
    random = np.random.RandomState([seed, number])
    width, height = [*SIZES][random.choice(len(SIZES), p=[*SIZES.values()])]
    light = _field(random, width, height)
    for _ in range(_EDGES):  # edges of objects
        light += random.normal(0.0, 0.7) * (_field(random, width, height, octaves=3) > 0)
    light += random.lognormal(-1.2, 0.5) * random.standard_normal(light.shape)
    colours = [_field(random, width, height, octaves=4) for _ in range(2)]
    levels = np.empty((height, width, 3), np.float32)
    levels[..., 0] = 128 + 45 * light
    for channel, colour in enumerate(colours, 1):
        levels[..., channel] = 128 + 18 * colour
    whole = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    image = Image.fromarray(whole, "YCbCr")
    file = io.BytesIO()
    image.save(file, "JPEG", quality=int(random.randint(90, 98)), subsampling="4:2:0")
    return file.getvalue()


def _field(random: np.random.RandomState, width: int, height: int, octaves: int = 8) -> Array:
    """Return a smooth random field (height, width) of mean 0 and deviation 1.
    It is a sum of grids of random numbers, each twice as fine as the previous one."""
    total = np.zeros((height, width), np.float32)
    amplitude, cells = 1.0, 2
    for _ in range(octaves):
        if cells > max(width, height):
            break
        shape = (max(2, cells * height // width), cells)
        grid = random.standard_normal(shape).astype(np.float32)
        smooth = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
        total += amplitude * np.asarray(smooth)
        amplitude *= _FALL
        cells *= 2
    total -= total.mean()
    return np.asarray(total / max(float(total.std()), 1e-6), np.float32)
