"""Tasks to be learned: data for training, data held out, and how outputs are scored.

A task is a module of this folder with ``data`` and ``SCORING``; the model config names the task
that it is for (``task``). A model of ELECTRA is given sentences, whose words are hidden behind the
task's back. Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

#: Arrays of equally many samples, by the names of a model's inputs.
Arrays = Dict[str, Any]
#: Scored quantities of all samples, in order, by name: arrays of shape (samples,).
Scored = Dict[str, Any]

_HERE = os.path.dirname(os.path.realpath(__file__))


class TaskError(Exception):
    """Invalid data; the message names the file and the place in it."""


def means(
    hyperparameters: Mapping[str, Any], sums: Mapping[str, float], samples: float
) -> Dict[str, float]:
    """Return the means over the samples."""
    return {name: value / samples for name, value in sums.items()}


class Data(NamedTuple):
    """Data of a task. ``train`` and ``held_out`` have no sample in common. ``total``: function that
    returns scores and loss of the held-out set from the scored values of its samples, where their
    sums do not suffice; ``notes``: for the record."""

    train: Arrays
    held_out: Arrays
    total: Optional[Callable[[Scored], Dict[str, float]]] = None
    notes: Mapping[str, Any] = MappingProxyType({})


class Scoring(NamedTuple):
    """Scores of a task, and the function that computes them.

    ``names``: names of the scores, from 0 to 1, the principal one first; ``score``: function of
    outputs and their batch that returns the scored values of each sample by name, and the ``loss``
    of each, in float64; ``losses``: names of the parts of the loss, if it has parts; ``may_lack``:
    names of the scores that may be undefined; ``of_sums``: function of hyper-parameters, sums of
    all scored values and number of samples that returns scores and loss."""

    names: Tuple[str, ...]
    score: Callable[[Sequence[Any], Arrays], Scored]
    losses: Tuple[str, ...] = ()
    may_lack: Tuple[str, ...] = ()
    of_sums: Callable[[Mapping[str, Any], Mapping[str, float], float], Dict[str, float]] = means


class LearningTask(NamedTuple):
    """Task that a model learns.

    ``data``: function of the tokens of a sequence, None for models without, and of the folder of
    the files, None for a task that reads none. ``amounts``: function of the folder that returns the
    numbers of samples for training and held out, for tasks where ``data`` takes long to count
    them."""

    name: str
    scoring: Scoring
    data: Callable[..., Data]
    amounts: Optional[Callable[[str], Tuple[int, int]]] = None


def names() -> List[str]:
    """Return the names of all tasks."""
    files = os.listdir(_HERE)
    return sorted(file[:-3] for file in files if file.endswith(".py") and file[0] != "_")


def load(name: str) -> LearningTask:
    """Return a task by its name. Raises ValueError for an unknown one."""
    if name not in names():
        raise ValueError(f"no task {name!r}; there are: {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    return LearningTask(name, module.SCORING, module.data, getattr(module, "amounts", None))


def size(arrays: Arrays) -> int:
    """Return the number of samples."""
    return len(next(iter(arrays.values())))


def checksum(data: Data) -> str:
    """Return SHA-256 (hex) over the names and bytes of all arrays."""
    digest = hashlib.sha256()
    for arrays in (data.train, data.held_out):
        for name in sorted(arrays):
            digest.update(name.encode() + arrays[name].tobytes())
    return digest.hexdigest()
