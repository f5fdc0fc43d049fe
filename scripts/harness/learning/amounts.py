"""Number of samples of a training, for a plan. Nothing is decoded, cut to windows or tokenized."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

import tasks
from core.axes import READING

from harness.samples import folder, tokens


class Amounts(NamedTuple):
    """Number of training samples per epoch, and of held-out samples."""

    train: int
    held_out: int


def amounts(
    model_config: Mapping[str, Any], source: str, length: Optional[int], root: Optional[str]
) -> Optional[Amounts]:
    """Return the amounts of a model; None for a model that is not trained on samples, or without
    its folder.

    ``source``: where its samples come from, as in :mod:`core.axes`. ``length``: tokens of a
    sequence. ``root``: folder of the files, or None. Images and questions are counted; the number
    of sequences follows from the size of token files. Raises :class:`tasks.TaskError` and
    :class:`folder.BadData` for an incomplete folder."""
    splits = (folder.TRAIN, folder.VALIDATION)
    if source not in READING:
        reads = model_config.get("reads_files", False)
        if "task" not in model_config or (reads and root is None):
            return None
        task = tasks.load(model_config["task"])
        if task.amounts and root is not None:
            return Amounts(*task.amounts(root))
        data = task.data(length, root if reads else None)
        return Amounts(tasks.size(data.train), tasks.size(data.held_out))
    if root is None:
        return None
    if tokens.form_of(model_config["inputs"]) == tokens.ELECTRA:
        return Amounts(*(tokens.find(root, split).length // (length or 1) for split in splits))
    if folder.size_of(model_config["inputs"]) is None:
        return None
    return Amounts(*(len(folder.scan(root, split).paths) for split in splits))
