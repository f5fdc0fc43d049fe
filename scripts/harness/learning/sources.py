"""Sources of training data: the arrays of a task in memory, or images or sentences in a folder."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence

import tasks
from core.inputs import DATA, READING, SYNTHETIC
from tasks.scoring import replaced

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Workload
from harness.learning import batches, files, material, pretraining
from harness.learning.evaluation import Evaluator
from harness.learning.targets import Softening, softened
from harness.samples import folder

Arrays = Dict[str, Any]


class TrainingData(NamedTuple):
    """Training data of a rank.

    ``samples``: of all ranks in an epoch. ``first``: a batch to build with. ``of_epoch``: returns
    this rank's batches of an epoch, numbered from 0. ``evaluator``: makes the evaluator, before the
    model is built. ``steps``: of an epoch, by :func:`in_steps`."""

    samples: int
    first: Arrays
    of_epoch: Callable[[int], Iterator[Arrays]]
    evaluator: Callable[[], Evaluator]
    steps: int = 0


def scores(workload: Workload) -> Sequence[str]:
    """Return the names of the scores, the principal one first."""
    if pretraining.is_pretrained(workload.model_config):
        return replaced.SCORES
    task = workload.model_config.get("task")
    if task and workload.case.input not in READING:
        return tasks.load(task).scores
    return files.scores_of_images(workload.model_config)


def losses(workload: Workload) -> Sequence[str]:
    """Return the names of the parts of the held-out loss, if it has parts."""
    return replaced.LOSSES if pretraining.is_pretrained(workload.model_config) else ()


def may_lack(workload: Workload) -> Sequence[str]:
    """Return the names of scores that may be undefined."""
    return replaced.MAY_LACK if pretraining.is_pretrained(workload.model_config) else ()


def training_data(context: Context) -> TrainingData:
    """Return the training data and store the field ``task``. Raises :class:`Unsupported` where
    there is nothing to learn, and errors of reading data."""
    case, model_config = context.workload.case, context.workload.model_config
    if case.input in READING:
        is_pretrained = pretraining.is_pretrained(model_config)
        if not is_pretrained and folder.size_of(model_config["inputs"]) is None:
            raise Unsupported(
                f"{case.model} has no images and is no ELECTRA: no other text is learned here"
            )
        return TrainingData(*files.source(context))
    if case.input != SYNTHETIC:
        raise Unsupported(
            f"from {case.input} nothing is learned: {DATA}, or nothing, which is the model's task"
        )
    if "task" not in model_config:
        raise Unsupported(f"the model config of {case.model} names no task to be learned")
    return _of_task(context)


def softening(source: TrainingData, how: Optional[Softening], context: Context) -> TrainingData:
    """Return ``source`` with soft targets in training, if there are any."""
    if how is None:
        return source
    softer, seed, rank = how, context.rank_context.seed, context.rank_context.rank

    def of_epoch(epoch: int) -> Iterator[Arrays]:
        for number, batch in enumerate(source.of_epoch(epoch)):
            yield softened(batch, softer, (seed, epoch, number, rank))

    first = softened(source.first, softer, (seed, 0, 0, rank))
    return source._replace(first=first, of_epoch=of_epoch)


class EpochsOfSteps:
    """Epochs of a number of ``steps``, each of which continues where the one before stopped.

    ``of_pass``: one pass through all samples, in ``whole`` steps."""

    def __init__(self, of_pass: Callable[[int], Iterator[Arrays]], whole: int, steps: int) -> None:
        self._of_pass, self._whole, self._steps = of_pass, whole, steps
        self._next, self._batches = 0, self._from(0)

    def __call__(self, epoch: int) -> Iterator[Arrays]:
        first = epoch * self._steps
        if first != self._next:  # a training that is taken up
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
    Raises :class:`harness.adapter.Mismatch` where there are too few samples for a step."""
    case = context.workload.case
    whole = source.samples // case.samples_per_step
    if not whole:
        raise Mismatch(
            f"a step of {case.samples_per_step} samples is more than there is to train with: "
            f"{source.samples}"
        )
    if not steps:
        return source._replace(steps=whole)
    return source._replace(steps=steps, of_epoch=EpochsOfSteps(source.of_epoch, whole, steps))


def _of_task(context: Context) -> TrainingData:
    case, rank_context = context.workload.case, context.rank_context
    task = tasks.load(context.workload.model_config["task"])
    data = material.data_of(context, task)
    context.fields["task"] = {
        "name": task.name,
        "sha256": tasks.checksum(data),
        "train": tasks.size(data.train),
        "held_out": tasks.size(data.held_out),
        **({"notes": dict(data.notes)} if data.notes else {}),
    }
    if pretraining.is_pretrained(context.workload.model_config):
        return TrainingData(*pretraining.of_task(context, task, data))

    def of_epoch(epoch: int) -> Iterator[Arrays]:
        seed = rank_context.seed * 100003 + epoch
        return batches.epoch_batches(
            data.train, case.samples_of_replica, rank_context.rank, case.devices, seed
        )

    first, _ = next(batches.evaluation_batches(data.train, case.samples_of_replica))
    return TrainingData(
        tasks.size(data.train),
        first,
        of_epoch,
        lambda: Evaluator(context.adapter, task.score, data.held_out, data.total),
    )
