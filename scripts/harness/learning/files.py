"""Learn from the files of a folder, through the framework's own loader: images, or sentences to
pre-train ELECTRA with.

Training reads ``train``, with the crops and flips of :mod:`harness.samples.order`. Evaluation reads
``val``, of which each rank has a part.
"""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence, Tuple

from tasks import Scored
from tasks.scoring import classes

from harness.adapter import require
from harness.kind import Context
from harness.learning import pretraining
from harness.learning.evaluation import Evaluator, Score
from harness.loader import Loading, Loads
from harness.measuring import model
from harness.measuring.file_sources import FileSource, ImageSource, TokenSource, workers_of
from harness.samples import folder, order

Arrays = Dict[str, Any]
#: Arguments of :class:`harness.learning.sources.TrainingData`.
Parts = Tuple[int, Arrays, Callable[[int], Iterator[Arrays]], Callable[[], Evaluator]]
#: Names of the task of images, and of that of sentences.
IMAGES, WORDS = "images", "words"
#: Seed of the masks of held-out sentences.
_HELD_OUT = 0


def scores_of_images(model_config: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the scores of a model's outputs."""
    return classes.scores(model_config.get("hyperparameters", {}).get("classes", 0))


class FolderEvaluator(Evaluator):
    """Evaluator of this rank's part of the held-out samples, which adds up all ranks.

    Each rank has its own running statistics."""

    def __init__(
        self,
        source: FileSource,
        request: Any,
        first: Arrays,
        score: Score,
        of_sums: Callable[[Dict[str, float], float], Dict[str, float]],
    ) -> None:
        """Build the evaluator. ``request``: to the loader of ``source``. ``first``: batch of the
        model's size. ``of_sums``: function from the sums of the scored values of all ranks, and the
        number of samples, to the scores."""
        self._source, self._request, self._of_sums = source, request, of_sums
        super().__init__(source.adapter, score, first, self.of_all_ranks)

    def held_out(self) -> Iterator[Tuple[Arrays, int]]:
        import numpy as np

        for batch in self._source.batches(self._request, 0):
            count = len(batch[self._source.noted])
            chosen = np.arange(self._batch) % count  # the last is filled up with its first ones
            yield {name: np.asarray(array)[chosen] for name, array in batch.items()}, count

    def of_all_ranks(self, scored: Scored) -> Dict[str, float]:
        """Return the scores over the samples of all ranks."""
        summed = self._trained.all_reduce
        samples = summed(float(len(next(iter(scored.values())))))
        sums = {name: summed(float(values.sum())) for name, values in scored.items()}
        return self._of_sums(sums, samples)


def source(context: Context) -> Parts:
    """Return the training data of a rank.

    Stores the fields ``task``, ``data_set``, ``loader`` and ``loader_output``. Raises errors of
    reading data, and :class:`harness.adapter.Unsupported` without a loader."""
    require(context.adapter, Loading)
    learned = _sentences if pretraining.is_pretrained(context.workload.model_config) else _images
    return learned(context)


def _images(context: Context) -> Parts:
    case, fields, workers = context.workload.case, context.fields, workers_of(context)
    held_out = ImageSource(context, folder.VALIDATION, workers)
    train = ImageSource(context, folder.TRAIN, workers)
    images = (train.images, held_out.images)
    model.check_classes(context.workload.model_config, len(train.images.classes))
    fields["data_set"]["identity"] = folder.identity(train.root)
    counts = tuple(len(some.paths) for some in images)
    fields["task"] = _task(IMAGES, b"".join(map(_names, images)), *counts)
    first = train.first()
    mine = part_of_rank(
        held_out.images, train.rank, train.ranks, case.batch_per_device, train.size, workers
    )

    def of_sums(sums: Dict[str, float], samples: float) -> Dict[str, float]:
        return {name: value / samples for name, value in sums.items()}

    def evaluator() -> Evaluator:
        return FolderEvaluator(held_out, mine, first, classes.score, of_sums)

    return counts[0], first, train.whole_batches, evaluator


def _sentences(context: Context) -> Parts:
    case, fields, workers = context.workload.case, context.fields, workers_of(context)
    held_out = TokenSource(context, folder.VALIDATION, workers, seed=_HELD_OUT)
    train = TokenSource(context, folder.TRAIN, workers)
    mine = held_out.epoch(0, case.batch_per_device)
    identity = fields["data_set"]["identity"] = folder.identity(train.root)
    counts = tuple(len(request.starts) * train.ranks for request in (train.epoch(0), mine))
    fields["task"] = _task(WORDS, identity.encode(), *counts)
    first = train.first()
    total = pretraining.total_of(context.workload.model_config)

    def of_sums(sums: Dict[str, float], samples: float) -> Dict[str, float]:
        return total.of_sums(sums)

    def evaluator() -> Evaluator:
        return FolderEvaluator(held_out, mine, first, pretraining.score, of_sums)

    return counts[0], first, train.whole_batches, evaluator


def _task(name: str, content: bytes, train: int, held_out: int) -> Dict[str, Any]:
    """Return the field ``task``; ``content``: what identifies the data."""
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name, "sha256": digest, "train": train, "held_out": held_out}


def _names(images: folder.Images) -> bytes:
    return "\0".join([*images.paths, ""]).encode("utf-8", "surrogateescape")


def part_of_rank(
    images: folder.Images, rank: int, ranks: int, batch: int, size: int, workers: int
) -> Loads:
    """Return the request for this rank's validation images: every ``ranks``-th, beginning with
    number ``rank``. Every image counts once. Raises :class:`folder.BadData` where there is none for
    a rank."""
    import numpy as np

    places = np.arange(rank, len(images.paths), ranks)
    if not len(places):
        raise folder.BadData(
            f"{folder.VALIDATION} has {len(images.paths)} images, fewer than {ranks} devices"
        )
    most = min(batch, len(places))
    return order.loads(images, places, folder.VALIDATION, 0, 0, most, size, workers)
