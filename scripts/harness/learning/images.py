"""Learn from images in a folder, through the framework's own loader.

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
from harness.learning.evaluation import Evaluator
from harness.loader import Loading, Loads
from harness.measuring import input_pipeline, model
from harness.samples import folder, order, supply

Arrays = Dict[str, Any]
#: Name of the task.
NAME = "images"


def scores(model_config: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the scores of a model's outputs."""
    return classes.scores(model_config.get("hyperparameters", {}).get("classes", 0))


class ImageEvaluator(Evaluator):
    """Evaluator of this rank's part of the images, which adds up all ranks: every image counts
    once.

    Each rank has its own running statistics."""

    def __init__(self, trained: Any, images: folder.Images, loads: Loads, first: Arrays) -> None:
        """Build the evaluator. ``trained``: also loads images. ``first``: batch of the model's
        size."""
        self._loader, self._images, self._asked = trained, images, loads
        super().__init__(trained, classes.score, first, self.of_all_ranks)

    def held_out(self) -> Iterator[Tuple[Arrays, int]]:
        import numpy as np

        for loaded in supply.batches(self._loader, self._asked, self._images.root):
            count = len(loaded.numbers)
            chosen = np.arange(self._batch) % count  # the last is filled up with its first ones
            images, labels = np.asarray(loaded.images), np.asarray(loaded.labels)
            yield {"images": images[chosen], "labels": labels[chosen]}, count

    def of_all_ranks(self, scored: Scored) -> Dict[str, float]:
        """Return the means over the samples of all ranks."""
        summed = self._trained.all_reduce
        samples = summed(float(len(next(iter(scored.values())))))
        return {name: summed(float(values.sum())) / samples for name, values in scored.items()}


def source(
    context: Context,
) -> Tuple[int, Arrays, Callable[[int], Iterator[Arrays]], Callable[[], Evaluator]]:
    """Return the parts of a :class:`harness.learning.sources.TrainingData`.

    Stores the fields ``task``, ``data_set``, ``loader`` and ``loader_output``. Raises
    :class:`folder.BadData` for invalid images, and :class:`harness.adapter.Unsupported` without a
    loader."""
    import numpy as np

    adapter, workload, rank_context, fields = (
        context.adapter, context.workload, context.rank_context, context.fields,
    )  # fmt: skip
    require(adapter, Loading)
    case, root, bad = workload.case, workload.data, workload.bad_images
    size = folder.size_of(workload.model_config["inputs"])
    assert root is not None, "the declaration has seen to it"
    assert size is not None, "the declaration has seen to it"
    workers = min(input_pipeline.MOST_WORKERS, max(1, len(context.cores) or rank_context.threads))

    def images_of(split: str) -> folder.Images:
        images = folder.scan(root, split, bad)
        if bad == folder.SKIP:
            images = supply.without_broken(adapter, images, range(len(images.paths)), workers)
        return images

    train = context.phase("scan", lambda: images_of(folder.TRAIN))
    held_out = context.phase(
        "scan of held-out images", lambda: images_of(folder.VALIDATION), "held_out_scan"
    )
    model.check_classes(workload.model_config, len(train.classes))
    fields["data_set"] = {**folder.report(train), "identity": folder.identity(root)}
    fields["loader"] = {"workers": workers, **adapter.loader_settings()}
    fields["task"] = {
        "name": NAME,
        "sha256": _digest(train, held_out),
        "train": len(train.paths),
        "held_out": len(held_out.paths),
    }
    batch, ranks = case.samples_of_replica, case.devices

    def asked(number: int) -> Loads:
        places = order.epoch(
            train, folder.TRAIN, number, rank_context.seed, rank_context.rank, ranks
        )
        return order.loads(
            train, places, folder.TRAIN, number, rank_context.seed, batch, size, workers
        )

    def of_epoch(number: int) -> Iterator[Arrays]:
        for loaded in supply.batches(adapter, asked(number), root):
            if len(loaded.numbers) == batch:
                yield {"images": loaded.images, "labels": loaded.labels}

    alone = order.beginning(asked(0), batch)._replace(workers=0)
    fields["loader_output"] = context.phase("check", lambda: supply.checked(adapter, alone, root))
    loaded = next(supply.batches(adapter, alone, root))
    first = {"images": np.array(loaded.images), "labels": loaded.labels}
    mine = part_of_rank(held_out, rank_context.rank, ranks, case.batch_per_device, size, workers)
    return (
        len(train.paths),
        first,
        of_epoch,
        lambda: ImageEvaluator(adapter, held_out, mine, first),
    )


def part_of_rank(
    images: folder.Images, rank: int, ranks: int, batch: int, size: int, workers: int
) -> Loads:
    """Return the request for this rank's validation images: every ``ranks``-th, beginning with
    number ``rank``. Raises :class:`folder.BadData` where there is none for a rank."""
    import numpy as np

    places = np.arange(rank, len(images.paths), ranks)
    if not len(places):
        raise folder.BadData(
            f"{folder.VALIDATION} has {len(images.paths)} images, fewer than {ranks} devices"
        )
    most = min(batch, len(places))
    return order.loads(images, places, folder.VALIDATION, 0, 0, most, size, workers)


def _digest(*splits: folder.Images) -> str:
    """Return the SHA-256 (hex) of the paths of all images."""
    digest = hashlib.sha256()
    for images in splits:
        digest.update("\0".join([*images.paths, ""]).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
