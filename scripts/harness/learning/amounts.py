"""How many samples a training has, for a plan: nothing is decoded, cut to windows or tokenized."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Optional

import tasks
from core.inputs import READING

from harness.learning import pretraining
from harness.samples import folder

#: Of a text, or of records of tokens: about as many make a token.
_BYTES = 4


class Amounts(NamedTuple):
    """Samples of an epoch, and those that are held out."""

    train: int
    held_out: int


def amounts(
    model_config: Mapping[str, Any], source: str, length: Optional[int], root: Optional[str]
) -> Optional[Amounts]:
    """Of a model with this config. ``source``: where its samples come from, as
    :mod:`core.inputs` has it; ``length``: tokens of a sequence; ``root``: the folder of the
    files, None where there is none. Questions and images are counted, sequences are guessed from
    the bytes of their files. None for a model that learns nothing so, and without its folder.
    Raises :class:`tasks.BadData` and :class:`folder.BadData` for a folder that lacks what it must
    have."""
    if source not in READING:
        return _of_task(model_config, length, root)
    if root is None:
        return None
    if pretraining.is_one(model_config):
        sizes = (_bytes(root, split) for split in (folder.TRAIN, folder.VALIDATION))
        return Amounts(*(size // (_BYTES * (length or 1)) for size in sizes))
    if folder.size_of(model_config["inputs"]) is None:
        return None
    both = (folder.scan(root, one, folder.REFUSE) for one in (folder.TRAIN, folder.VALIDATION))
    return Amounts(*(len(images.paths) for images in both))


def _of_task(
    model_config: Mapping[str, Any], length: Optional[int], root: Optional[str]
) -> Optional[Amounts]:
    reads = model_config.get("reads_files", False)
    if "task" not in model_config or (reads and root is None):
        return None
    task = tasks.load(model_config["task"])
    given = tasks.Given(length, root if reads else None)
    if task.amounts:
        return Amounts(*task.amounts(given))
    data = task.data(given)
    return Amounts(tasks.size(data.train), tasks.size(data.held_out))


def _bytes(root: str, split: str) -> int:
    """Of all files of a split."""
    total = 0
    for place, _, names in os.walk(root):
        within = os.path.relpath(place, root).split(os.sep)[0] == split
        for name in names:
            if within or (place == root and name.startswith(split)):
                total += os.path.getsize(os.path.join(place, name))
    return total
