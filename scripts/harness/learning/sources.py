"""Training data of a rank: arrays of a task in memory, or images or sentences in a folder.

A folder is read through the framework's own loader: ``train`` with the crops and flips of
:mod:`harness.samples.folder`, ``val`` in parts, one for each rank.

ELECTRA is pre-trained with sentences. For each batch, the host draws which words are masked, which
of them stay, and a random number for each replacement. Draws depend on seed, epoch and batch only,
so they are the same in every framework; draws of held-out data are the same for every seed, too. A
hash of a replacement's random number and each word of the vocabulary gives Gumbel noise
(``scripts/reference/electra.py``), so frameworks with equal generators sample the same words,
except for ties within rounding.
"""

from __future__ import annotations

import hashlib
import itertools
from functools import partial
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Sequence, Tuple

import tasks
from core.axes import DATA, READING, SYNTHETIC
from tasks import REPLACED, Arrays, Scoring, class_scoring

from harness.adapter import Mismatch, Unsupported, require
from harness.kind import Context, Workload
from harness.learning.evaluation import Evaluator
from harness.loader import Loading, Loads
from harness.measuring import model
from harness.measuring.input_pipeline import FileSource, ImageSource, TokenSource, workers_of
from harness.measuring.model import predictions
from harness.samples import folder, tokens

#: Parameter value that stands for no folder or no number.
NONE = "none"
#: Seed of the masks of held-out data.
_HELD_OUT = 0


class TrainingData(NamedTuple):
    """Training data of a rank.

    ``samples``: samples of all ranks in an epoch. ``first``: a batch to build with.
    ``batches_in_epoch``: returns this rank's batches of an epoch, numbered from 0. ``evaluator``:
    makes the evaluator, before the model is built. ``steps``: steps of an epoch."""

    samples: int
    first: Arrays
    batches_in_epoch: Callable[[int], Iterator[Arrays]]
    evaluator: Callable[[], Evaluator]
    steps: int = 0


def is_pretrained(model_config: Mapping[str, Any]) -> bool:
    """Return whether a model is pre-trained as ELECTRA is."""
    return tokens.form_of(model_config.get("inputs", [])) == tokens.ELECTRA


def scoring_of(workload: Workload) -> Scoring:
    model_config = workload.model_config
    if is_pretrained(model_config):
        return REPLACED
    task = model_config.get("task")
    if task and workload.case.input not in READING:
        return tasks.load(task).scoring
    return class_scoring(model_config.get("hyperparameters", {}).get("classes", 0))


def training_data(context: Context) -> TrainingData:
    """Return the training data and store the field ``task``; for a folder also ``data_set``,
    ``loader`` and ``loader_output``. The parameter ``epoch_steps`` is the number of steps in an
    epoch; 0 means one pass through all samples. Raises :class:`Unsupported` where there is
    nothing to learn, :class:`Mismatch` where there are too few samples for a step, and errors of
    reading data."""
    case, model_config = context.workload.case, context.workload.model_config
    if case.input in READING:
        require(context.adapter, Loading)
        if not is_pretrained(model_config) and folder.size_of(model_config["inputs"]) is None:
            raise Unsupported(
                f"{case.model} takes no images and is not ELECTRA; allowed: models of images, or "
                "ELECTRA"
            )
        source = _folder_data(context)
    elif case.input != SYNTHETIC:
        raise Unsupported(
            f"input: found {case.input}, from which nothing can be learned; allowed: {DATA}, or "
            "none for the model's own task"
        )
    elif "task" not in model_config:
        raise Unsupported(f"the model config of {case.model} names no task")
    else:
        source = _arrays_of_task(context)
    whole = source.samples // case.samples_per_step
    if not whole:
        raise Mismatch(
            f"a step takes {case.samples_per_step} samples; there are only {source.samples} to "
            "train with"
        )
    steps = context.workload.parameters["epoch_steps"]
    if not steps:
        return source._replace(steps=whole)
    of_epoch = epochs_of_steps(source.batches_in_epoch, whole, steps)
    return source._replace(steps=steps, batches_in_epoch=of_epoch)


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
    context.fields["task"] = _task(task.name, tasks.checksum(data), *counts)
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


def _folder_data(context: Context) -> TrainingData:
    """Return the data of a folder, images or sentences."""
    workload, workers = context.workload, workers_of(context)
    batch = workload.case.batch_per_device
    train: FileSource
    held_out: FileSource
    request: Any  # for this rank's held-out samples
    if is_pretrained(workload.model_config):
        name = "words"
        held_out = TokenSource(context, folder.VALIDATION, workers, seed=_HELD_OUT)
        train = TokenSource(context, folder.TRAIN, workers)
        request = held_out.epoch(0, batch)
        counts = [len(loads.starts) * train.ranks for loads in (train.epoch(0), request)]
    else:
        name = "images"
        held_out = ImageSource(context, folder.VALIDATION, workers)
        train = ImageSource(context, folder.TRAIN, workers)
        model.check_classes(workload.model_config, len(train.images.classes))
        of_rank = (held_out.images, train.rank, train.ranks)
        request = part_of_rank(*of_rank, batch, train.size, workers)
        counts = [len(source.images.paths) for source in (train, held_out)]
    sha256 = hashlib.sha256(folder.identity(train.root).encode()).hexdigest()
    context.fields["task"] = _task(name, sha256, *counts)
    first = train.first()

    def filled() -> Iterator[Tuple[Arrays, int]]:
        """Yield the held-out batches; the last is filled up with its first samples."""
        import numpy as np

        for loaded in held_out.batches(request, 0):
            count = len(loaded[held_out.noted])
            chosen = np.arange(batch) % count
            yield {key: np.asarray(array)[chosen] for key, array in loaded.items()}, count

    scoring = scoring_of(workload)
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
    index ``rank``. Every image counts once. Raises :class:`folder.BadData` where there is none for
    a rank."""
    import numpy as np

    places = np.arange(rank, len(images.paths), ranks)
    if not len(places):
        raise folder.BadData(
            f"{folder.VALIDATION} has {len(images.paths)} images, fewer than {ranks} devices"
        )
    most = min(batch, len(places))
    return folder.loads(images, places, folder.VALIDATION, 0, 0, most, size, workers)


def _task(name: str, sha256: str, train: int, held_out: int) -> Dict[str, Any]:
    return {"name": name, "sha256": sha256, "train": train, "held_out": held_out}


def epochs_of_steps(
    of_pass: Callable[[int], Iterator[Arrays]], whole: int, steps: int
) -> Callable[[int], Iterator[Arrays]]:
    """Return a function that yields the batches of an epoch. An epoch has ``steps`` steps, and
    continues where the previous epoch stopped. ``of_pass``: one pass through all samples, in
    ``whole`` steps."""

    def batches_from(first: int) -> Iterator[Arrays]:
        begin, skipped = divmod(first, whole)
        for number in itertools.count(begin):
            yield from itertools.islice(of_pass(number), skipped, whole)
            skipped = 0

    position, batches = 0, batches_from(0)

    def batches_in_epoch(epoch: int) -> Iterator[Arrays]:
        nonlocal position, batches
        if epoch * steps != position:  # a continued training
            position = epoch * steps
            batches = batches_from(position)
        for batch in itertools.islice(batches, steps):
            position += 1
            yield batch

    return batches_in_epoch
