"""Training data of a rank: arrays of a task in memory, or images or sentences in a folder.

A folder is read through the framework's own loader: ``train`` with the crops and flips of
:mod:`harness.samples.folder`, and of ``val`` a part by each rank.

ELECTRA is pre-trained with sentences. For each batch, the host draws which words are masked, which
of them stay, and the number by which each replacement is sampled, by seed, epoch and batch: the
same in every framework. Held-out data have draws of their own, the same for every seed. The number
of a masked word and each word of the vocabulary give Gumbel noise by a hash
(``scripts/reference/electra.py``), so frameworks with equal generators sample the same words,
except for ties within rounding.
"""

from __future__ import annotations

import hashlib
import itertools
from functools import partial
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Sequence, Tuple

import tasks
from core.inputs import DATA, READING, SYNTHETIC
from tasks import Arrays, Scoring
from tasks.scoring import REPLACED, class_scoring

from harness.adapter import Mismatch, Unsupported, require
from harness.kind import Context, Workload
from harness.learning.evaluation import Evaluator
from harness.loader import Loading, Loads
from harness.measuring import model
from harness.measuring.input_pipeline import FileSource, ImageSource, TokenSource, workers_of
from harness.measuring.model import predictions
from harness.samples import folder, tokens

#: Value of a parameter without a folder or number.
NONE = "none"
#: Seed of the masks of held-out data.
_HELD_OUT = 0


class TrainingData(NamedTuple):
    """Training data of a rank.

    ``samples``: samples of all ranks in an epoch. ``first``: a batch to build with.
    ``batches_in_epoch``: returns this rank's batches of an epoch, numbered from 0. ``evaluator``:
    makes the evaluator, before the model is built. ``steps``: steps of an epoch, by
    :func:`in_steps`."""

    samples: int
    first: Arrays
    batches_in_epoch: Callable[[int], Iterator[Arrays]]
    evaluator: Callable[[], Evaluator]
    steps: int = 0


def is_pretrained(model_config: Mapping[str, Any]) -> bool:
    """Return whether a model is pre-trained as ELECTRA is."""
    return tokens.form_of(model_config.get("inputs", [])) == tokens.ELECTRA


def scoring_of(workload: Workload) -> Scoring:
    """Return how a workload's outputs are scored."""
    model_config = workload.model_config
    if is_pretrained(model_config):
        return REPLACED
    task = model_config.get("task")
    if task and workload.case.input not in READING:
        return tasks.load(task).scoring
    return class_scoring(model_config.get("hyperparameters", {}).get("classes", 0))


def training_data(context: Context) -> TrainingData:
    """Return the training data and store the field ``task``; of a folder also ``data_set``,
    ``loader`` and ``loader_output``. Raises :class:`Unsupported` where there is nothing to learn,
    and errors of reading data."""
    case, model_config = context.workload.case, context.workload.model_config
    if case.input in READING:
        require(context.adapter, Loading)
        if is_pretrained(model_config):
            return _sentences(context)
        if folder.size_of(model_config["inputs"]) is None:
            raise Unsupported(
                f"{case.model} takes no images and is not ELECTRA; allowed: models of images, or "
                "ELECTRA"
            )
        return _images(context)
    if case.input != SYNTHETIC:
        raise Unsupported(
            f"input: found {case.input}, from which nothing can be learned; allowed: {DATA}, or "
            "none for the model's own task"
        )
    if "task" not in model_config:
        raise Unsupported(f"the model config of {case.model} names no task")
    return _arrays_of_task(context)


def _arrays_of_task(context: Context) -> TrainingData:
    """Return the data of the model's task, from a folder if the model config says so.

    Raises :class:`Unsupported` where the folder is missing, :class:`Mismatch` where the model does
    not take the data, and what the task raises."""
    workload, rank_context, adapter = context.workload, context.rank_context, context.adapter
    case, model_config = workload.case, workload.model_config
    task, length = tasks.load(model_config["task"]), workload.case.sequence_length
    root = workload.parameters["data"] if model_config.get("reads_files", False) else None
    if root == NONE:
        raise Unsupported(
            f"{task.name} is read from files, and no folder is named: set data=DIR, or --parameter "
            "data=DIR"
        )
    data: tasks.Data = context.phase("task", lambda: task.data(length, root))
    # the model's random numbers are drawn later
    inputs = [entry for entry in model_config["inputs"] if entry["name"] not in tokens.DRAWN]
    for arrays in (data.train, data.held_out):
        check_inputs(arrays, inputs, length or 0)
    counts = tasks.size(data.train), tasks.size(data.held_out)
    context.fields["task"] = _task(task.name, tasks.checksum(data), counts)
    if data.notes:
        context.fields["task"]["notes"] = dict(data.notes)

    def masked(batch: Arrays, *seed: int) -> Arrays:
        return masked_batch(batch, length or 0, *seed) if is_pretrained(model_config) else batch

    def batches_in_epoch(epoch: int) -> Iterator[Arrays]:
        seed, rank = rank_context.seed, rank_context.rank
        of_rank = (case.samples_of_replica, rank, case.devices, seed * 100003 + epoch)
        for number, batch in enumerate(epoch_batches(data.train, *of_rank)):
            yield masked(batch, seed, rank, epoch, number)

    first, _ = next(evaluation_batches(data.train, case.samples_of_replica))
    first = masked(first, rank_context.seed)
    held_out = partial(evaluation_batches, masked(data.held_out, _HELD_OUT), case.batch_per_device)
    return TrainingData(
        counts[0],
        first,
        batches_in_epoch,
        lambda: Evaluator(adapter, task.scoring, first, held_out, data.total),
    )


def epoch_batches(
    arrays: Arrays, batch: int, replica: int, replicas: int, seed: int
) -> Iterator[Arrays]:
    """Yield the batches of one of several ``replicas`` in an epoch.

    All replicas draw the same order by ``seed`` and take different parts of it. The rest after the
    last whole step is dropped."""
    import numpy as np

    (samples,) = {len(array) for array in arrays.values()}
    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    order = np.random.RandomState(seed % 2**32).permutation(samples)
    together = batch * replicas
    for first in range(0, samples - together + 1, together):
        begin = first + replica * batch
        chosen = order[begin : begin + batch]
        yield {name: array[chosen] for name, array in arrays.items()}


def evaluation_batches(arrays: Arrays, batch: int) -> Iterator[Tuple[Arrays, int]]:
    """Yield all samples in order, in batches of one size, with the number of samples that count.

    The last batch is filled up with the first samples."""
    import numpy as np

    (samples,) = {len(array) for array in arrays.values()}
    for first in range(0, samples, batch):
        chosen = np.arange(first, first + batch) % samples
        yield {name: array[chosen] for name, array in arrays.items()}, min(batch, samples - first)


def check_inputs(arrays: Arrays, declared: Sequence[Mapping[str, Any]], length: int) -> None:
    """Raise :class:`Mismatch` for integers outside the range of the model's ``declared`` inputs.

    ``length``: length of its sequences, 0 for a model without."""
    for entry in declared:
        array, below = arrays[entry["name"]], entry.get("below")
        limit = length if below == "sequence" else below
        if limit is not None and len(array) and not 0 <= array.min() <= array.max() < limit:
            raise Mismatch(
                f"{entry['name']} of the task are {array.min()} to {array.max()}, those of the "
                f"model 0 to {limit - 1}"
            )


def masked_batch(batch: Arrays, length: int, *seed: int) -> Arrays:
    """Return sentences of ``length`` tokens with the masks drawn for them by ``seed`` (numbers from
    0 to below 2**32)."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    return tokens.hidden_by_electra(batch, predictions(length), np.random.RandomState(list(seed)))


def _images(context: Context) -> TrainingData:
    case, workers = context.workload.case, workers_of(context)
    held_out = ImageSource(context, folder.VALIDATION, workers)
    train = ImageSource(context, folder.TRAIN, workers)
    model.check_classes(context.workload.model_config, len(train.images.classes))
    mine = part_of_rank(
        held_out.images, train.rank, train.ranks, case.batch_per_device, train.size, workers
    )
    counts = len(train.images.paths), len(held_out.images.paths)
    return _folder_data(context, "images", train, held_out, mine, counts)


def _sentences(context: Context) -> TrainingData:
    case, workers = context.workload.case, workers_of(context)
    held_out = TokenSource(context, folder.VALIDATION, workers, seed=_HELD_OUT)
    train = TokenSource(context, folder.TRAIN, workers)
    mine = held_out.epoch(0, case.batch_per_device)
    ours, theirs = (len(request.starts) * train.ranks for request in (train.epoch(0), mine))
    return _folder_data(context, "words", train, held_out, mine, (ours, theirs))


def _folder_data(
    context: Context,
    name: str,
    train: FileSource,
    held_out: FileSource,
    mine: Any,
    counts: Tuple[int, int],
) -> TrainingData:
    """Return the data of a folder. ``mine``: the request for this rank's held-out samples;
    ``counts``: numbers of training and held-out samples of all ranks."""
    fields, batch = context.fields, context.workload.case.batch_per_device
    sha256 = hashlib.sha256(folder.identity(train.root).encode()).hexdigest()
    fields["task"] = _task(name, sha256, counts)
    first = train.first()

    def filled() -> Iterator[Tuple[Arrays, int]]:
        """Yield the held-out batches; the last is filled up with its first samples."""
        import numpy as np

        for loaded in held_out.batches(mine, 0):
            count = len(loaded[held_out.noted])
            chosen = np.arange(batch) % count
            yield {key: np.asarray(array)[chosen] for key, array in loaded.items()}, count

    scoring = scoring_of(context.workload)
    return TrainingData(
        counts[0],
        first,
        train.whole_batches,
        lambda: Evaluator(context.adapter, scoring, first, filled, shared=True),
    )


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
    return folder.loads(images, places, folder.VALIDATION, 0, 0, most, size, workers)


def _task(name: str, sha256: str, counts: Tuple[int, int]) -> Dict[str, Any]:
    return {"name": name, "sha256": sha256, "train": counts[0], "held_out": counts[1]}


class EpochsOfSteps:
    """Epochs of a number of ``steps``, each of which continues where the one before stopped.

    ``of_pass``: one pass through all samples, in ``whole`` steps."""

    def __init__(self, of_pass: Callable[[int], Iterator[Arrays]], whole: int, steps: int) -> None:
        self._of_pass, self._whole, self._steps = of_pass, whole, steps
        self._next, self._batches = 0, self._from(0)

    def __call__(self, epoch: int) -> Iterator[Arrays]:
        first = epoch * self._steps
        if first != self._next:  # a continued training
            self._next, self._batches = first, self._from(first)
        for batch in itertools.islice(self._batches, self._steps):
            self._next += 1
            yield batch

    def _from(self, first: int) -> Iterator[Arrays]:
        begin, skipped = divmod(first, self._whole)
        for number in itertools.count(begin):
            yield from itertools.islice(self._of_pass(number), skipped, self._whole)
            skipped = 0


def in_steps(source: TrainingData, steps: int, context: Context) -> TrainingData:
    """Return ``source`` with epochs of ``steps`` steps; 0 keeps one pass through all samples.
    Raises :class:`Mismatch` where there are too few samples for a step."""
    case = context.workload.case
    whole = source.samples // case.samples_per_step
    if not whole:
        raise Mismatch(
            f"a step takes {case.samples_per_step} samples; there are only {source.samples} to "
            "train with"
        )
    if not steps:
        return source._replace(steps=whole)
    return source._replace(
        steps=steps, batches_in_epoch=EpochsOfSteps(source.batches_in_epoch, whole, steps)
    )
