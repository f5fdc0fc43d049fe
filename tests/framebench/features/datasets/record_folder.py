"""Small images as records, as make-data writes them."""

from __future__ import annotations

from pathlib import Path

from framebench.features.datasets import record_files

from ....harness.loader.images import jpeg


def records(root: Path, form: str, train: int = 7, val: int = 4, classes: int = 2) -> Path:
    """Write images of each split as records, in two files except for RecordIO."""
    root.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("val", val)):
        contents = [jpeg(100 * len(split) + n, 40 + 7 * (n % 3), 30 + n) for n in range(count)]
        cut = -(-count // 2)
        names = {
            record_files.TFRECORD: [f"{split}-{n:05d}-of-00002.tfrecord" for n in range(2)],
            record_files.OFRECORD: [f"{split}/part-{n:05d}" for n in range(2)],
        }
        files = {f"{split}.rec": range(count)}
        if form in names:
            files = dict(zip(names[form], (range(cut), range(cut, count)), strict=True))
        for name, numbers in files.items():
            with record_files.writing(form, root / name) as add:
                for number in numbers:
                    add(number % classes, contents[number])
    return root
