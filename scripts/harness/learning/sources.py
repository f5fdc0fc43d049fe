"""What there is to learn from: the arrays of a task in memory, or images in a folder."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence

import tasks

from harness.adapter import Unsupported
from harness.inputs import DATA, SYNTHETIC
from harness.kind import Context, Subject
from harness.learning import batches, images, material
from harness.learning.evaluation import Evaluator
from harness.learning.targets import Softening, softened
from harness.samples import folder

Arrays = Dict[str, Any]


class Source(NamedTuple):
    """``samples``: of all ranks, that an epoch has; ``first``: a batch to build with; ``of_epoch``:
    from its number, from 0, to the batches of this rank; ``evaluator``: makes one, before the model
    is built."""

    samples: int
    first: Arrays
    of_epoch: Callable[[int], Iterator[Arrays]]
    evaluator: Callable[[], Evaluator]


def scores(subject: Subject) -> Sequence[str]:
    """Names of what outputs are scored by, the principal one first."""
    task = subject.facts.get("task")
    if task and subject.case.input != DATA:
        return tasks.load(task).scores
    return images.scores(subject.facts)


def source_of(context: Context) -> Source:
    """Leaves the field ``task``. Raises :class:`Unsupported` where there is nothing to learn, and
    what reading it raises."""
    case, facts = context.subject.case, context.subject.facts
    if case.input == DATA:
        if folder.size_of(facts["inputs"]) is None:
            raise Unsupported(f"{case.model} has no images, and running text is not learned here")
        return Source(*images.source(context))
    if case.input != SYNTHETIC:
        raise Unsupported(
            f"from {case.input} nothing is learned: {DATA}, or nothing, which is the model's task"
        )
    if "task" not in facts:
        raise Unsupported(f"the facts of {case.model} name no task to be learned")
    return _of_task(context)


def softening(source: Source, how: Optional[Softening], context: Context) -> Source:
    """``source`` with soft answers in training, if there are any."""
    if how is None:
        return source
    softer, seed, rank = how, context.place.seed, context.place.rank

    def of_epoch(epoch: int) -> Iterator[Arrays]:
        for number, batch in enumerate(source.of_epoch(epoch)):
            yield softened(batch, softer, (seed, epoch, number, rank))

    first = softened(source.first, softer, (seed, 0, 0, rank))
    return source._replace(first=first, of_epoch=of_epoch)


def _of_task(context: Context) -> Source:
    case, place = context.subject.case, context.place
    task = tasks.load(context.subject.facts["task"])
    data = material.data_of(context, task)
    context.fields["task"] = {
        "name": task.name,
        "sha256": tasks.checksum(data),
        "train": tasks.size(data.train),
        "held_out": tasks.size(data.held_out),
        **({"notes": dict(data.notes)} if data.notes else {}),
    }

    def of_epoch(epoch: int) -> Iterator[Arrays]:
        seed = place.seed * 100003 + epoch
        return batches.of_epoch(data.train, case.samples_of_replica, place.rank, case.devices, seed)

    first, _ = next(batches.in_turn(data.train, case.samples_of_replica))
    return Source(
        tasks.size(data.train),
        first,
        of_epoch,
        lambda: Evaluator(context.adapter, task.score, data.held_out, data.total),
    )
