"""Pre-train ELECTRA with sentences of a task, or of a folder (:mod:`harness.learning.files`).

For each batch, the host draws which words are masked, which of them stay, and the number by which
each replacement is sampled, by seed, epoch and batch: the same in every framework. Held-out data
have draws of their own, the same for every seed. The number of a masked word and each word of the
vocabulary give Gumbel noise by a hash (``scripts/reference/electra.py``), so frameworks with equal
generators sample the same words, except for ties within rounding.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

import tasks
from tasks.scoring import replaced

from harness.adapter import Mismatch
from harness.kind import Context
from harness.learning import batches
from harness.learning.evaluation import Evaluator
from harness.measuring.synthetic import predictions
from harness.samples import masking

Arrays = Dict[str, Any]
#: Arguments of :class:`harness.learning.sources.TrainingData`.
Parts = Tuple[int, Arrays, Callable[[int], Iterator[Arrays]], Callable[[], Evaluator]]
#: Seed of the masks of held-out data.
_HELD_OUT = 0
#: A loss below this part of the possible minimum is no coincidence.
_LEAST = 0.9
#: Note of a task with the minimal mean cross-entropy over masked held-out words.
LEAST = "least_generator_loss"


def is_pretrained(model_config: Mapping[str, Any]) -> bool:
    """Return whether a model is pre-trained this way."""
    return masking.form_of(model_config.get("inputs", [])) == masking.ELECTRA


def total_of(model_config: Mapping[str, Any]) -> replaced.Total:
    hyper = model_config["hyperparameters"]
    return replaced.Total(hyper["generator_weight"], hyper["discriminator_weight"])


def score(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """Score a batch as :func:`tasks.scoring.replaced.score`. Raises :class:`Mismatch` where the
    model replaced a word that was not masked."""
    counted = replaced.score(outputs, batch)
    if counted.pop("misplaced").any():
        raise Mismatch("the model says of words that were not hidden that they are replaced")
    return counted


def masked_batch(batch: Arrays, length: int, *seed: int) -> Arrays:
    """Return sentences of ``length`` tokens with the masks drawn for them by ``seed`` (numbers from
    0 to below 2**32)."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    return masking.hidden_by_electra(batch, predictions(length), np.random.RandomState(list(seed)))


def of_task(context: Context, task: tasks.LearningTask, data: tasks.Data) -> Parts:
    """Return the parts of a source of sentences in memory. Notes the least reachable loss, where
    the task knows it."""
    case, rank_context, model_config = (
        context.workload.case,
        context.rank_context,
        context.workload.model_config,
    )
    length = case.sequence_length or 0
    size = case.samples_of_replica

    def of_epoch(epoch: int) -> Iterator[Arrays]:
        seed = rank_context.seed * 100003 + epoch
        every = batches.epoch_batches(data.train, size, rank_context.rank, case.devices, seed)
        for number, batch in enumerate(every):
            yield masked_batch(batch, length, rank_context.seed, rank_context.rank, epoch, number)

    held_out = masked_batch(data.held_out, length, _HELD_OUT)
    if task.least_loss:
        percent = model_config["hyperparameters"]["masked_percent"]
        notes = context.fields["task"].setdefault("notes", {})
        notes[LEAST] = task.least_loss(held_out, percent)
    first, _ = next(batches.evaluation_batches(data.train, size))
    return (
        tasks.size(data.train),
        masked_batch(first, length, rank_context.seed),
        of_epoch,
        lambda: Evaluator(context.adapter, score, held_out, total_of(model_config).of_samples),
    )


def missed(rank: Mapping[str, Any]) -> str:
    """Return why a training is worse than chance, from its entry in the record; "" if it is better.

    Chance is knowing only how rare replaced tokens are. Raises :class:`harness.adapter.Mismatch`
    where the generator's loss is below the possible minimum."""
    scores, notes = rank["curve"][-1]["held_out"], rank["task"].get("notes", {})
    loss, least = scores["generator_loss"], notes.get(LEAST)
    if loss is not None and least is not None and loss < _LEAST * least:
        raise Mismatch(
            f"the generator's loss is {loss:.4f} where none can have less than {least:.4f}: it "
            "sees the words that it is asked for"
        )
    accuracy: Optional[float] = scores["discriminator_accuracy"]
    if accuracy is not None and accuracy < 0.5:
        return f"the discriminator tells {accuracy:.4f} of the tokens right, fewer than half"
    return ""
