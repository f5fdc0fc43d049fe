"""Soft targets: label smoothing and mixup.

Both are computed on the host, alike for every framework. ``labels`` become probabilities of all
classes, float32 (batch, classes), which the losses of image models accept instead of classes, int64
(batch,). Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from tasks import Arrays

from harness.adapter import Unsupported
from harness.kind import Context
from harness.learning.sources import TrainingData


class Softening(NamedTuple):
    """Parameters of soft targets.

    ``smoothing``: part of each target that is spread evenly over all ``classes`` (Szegedy et al.
    2016, arXiv:1512.00567). ``mixup``: parameter of Beta(mixup, mixup), by which two samples are
    mixed (Zhang et al. 2018, arXiv:1710.09412), 0 for none."""

    smoothing: float
    mixup: float
    classes: int


def softening_of(
    model_config: Mapping[str, Any], smoothing: float, mixup: float
) -> Optional[Softening]:
    """Return the parameters of label smoothing and mixup; None if both are 0. Raises
    :class:`Unsupported` for models whose samples are not images of one class each."""
    if not smoothing and not mixup:
        return None
    names = {declaration["name"] for declaration in model_config["inputs"]}
    classes = model_config.get("hyperparameters", {}).get("classes")
    if not {"images", "labels"} <= names or not classes:
        name = model_config["name"]
        raise Unsupported(f"label smoothing and mixup need images with one class each, not {name}")
    return Softening(smoothing, mixup, int(classes))


def softened(batch: Arrays, how: Softening, seed: Sequence[int]) -> Arrays:
    """Return ``batch`` with soft targets. ``seed``: seeds of the mixture, numbers from 0 to below
    2**32.

    Each sample gets a random share, and is mixed with its mirror image in the batch, the first with
    the last, as NVIDIA's ResNet-50 does. Images and targets are mixed by the same share."""
    import numpy as np

    labels = batch["labels"]
    spread = how.smoothing / how.classes
    answers = np.full((len(labels), how.classes), spread, np.float64)
    answers[np.arange(len(labels)), labels] += 1 - how.smoothing
    images = np.asarray(batch["images"])
    if how.mixup:
        # RandomState, not Generator: its stream is the same in every numpy since 1.0.
        random = np.random.RandomState(list(seed))
        share = random.beta(how.mixup, how.mixup, (len(labels), 1))
        answers = share * answers + (1 - share) * answers[::-1]
        kept = share.astype(np.float32).reshape(-1, *[1] * (images.ndim - 1))
        images = kept * images + (1 - kept) * images[::-1]
    return {**batch, "images": images, "labels": answers.astype(np.float32)}


def with_soft_targets(
    source: TrainingData, how: Optional[Softening], context: Context
) -> TrainingData:
    """Return ``source`` with soft targets in training, if there are any."""
    if how is None:
        return source
    softer, seed, rank = how, context.rank_context.seed, context.rank_context.rank

    def batches_in_epoch(epoch: int) -> Iterator[Arrays]:
        for number, batch in enumerate(source.batches_in_epoch(epoch)):
            yield softened(batch, softer, (seed, epoch, number, rank))

    first = softened(source.first, softer, (seed, 0, 0, rank))
    return source._replace(first=first, batches_in_epoch=batches_in_epoch)
