"""Sentences as what is learned, of a task or from a folder: ELECTRA is pre-trained with them.

Which words are hidden, which of them stay and by what number the replacement of each is sampled is
drawn anew for each batch, on the host, by the seed, the epoch and the batch: the same in every
framework. What is held out has its own draws, which are the same each time and for every seed.
The number of a hidden word and each word of the vocabulary make Gumbel noise by a hash
(``scripts/reference/electra.py``), so that two frameworks whose generators agree sample the same
words; where two words are as likely as rounding can tell, they may sample another one.
"""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

import tasks
from tasks.scoring import replaced

from harness.adapter import Mismatch, require
from harness.kind import Context
from harness.learning import batches
from harness.learning.evaluation import Evaluator
from harness.loader import Loading
from harness.measuring.synthetic import predictions
from harness.measuring.token_pipeline import WORKERS, TokenSource
from harness.samples import folder, masking, tokens

Arrays = Dict[str, Any]
#: What a :class:`harness.learning.sources.Source` is made of.
Parts = Tuple[int, Arrays, Callable[[int], Iterator[Arrays]], Callable[[], Evaluator]]
#: The name of what is learned from a folder.
NAME = "words"
#: By which what is held out is hidden.
_HELD_OUT = 0
#: A loss that is below this part of the least that can be is no chance.
_LEAST = 0.9
#: Of the notes of a task: the least mean cross-entropy over hidden words that is held out.
LEAST = "least_generator_loss"


def is_one(model_config: Mapping[str, Any]) -> bool:
    """Whether a model is pre-trained so."""
    return masking.form_of(model_config.get("inputs", [])) == masking.ELECTRA


def total_of(model_config: Mapping[str, Any]) -> replaced.Total:
    hyper = model_config["hyperparameters"]
    return replaced.Total(hyper["generator_weight"], hyper["discriminator_weight"])


def score(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """As :func:`tasks.scoring.replaced.score` has it. Raises :class:`Mismatch` where the model has
    replaced another word than a hidden one."""
    counted = replaced.score(outputs, batch)
    if counted.pop("misplaced").any():
        raise Mismatch("the model says of words that were not hidden that they are replaced")
    return counted


def hidden(batch: Arrays, length: int, *seed: int) -> Arrays:
    """Sentences of so many tokens with what is drawn for them by ``seed``, numbers from 0 to below
    2**32."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    return masking.hidden_by_electra(batch, predictions(length), np.random.RandomState(list(seed)))


def of_task(context: Context, task: tasks.Task, data: tasks.Data) -> Parts:
    """From sentences in memory. Leaves a note of the least loss that can be reached, where the task
    knows it."""
    case, rank_context, model_config = (
        context.workload.case,
        context.rank_context,
        context.workload.model_config,
    )
    length = case.sequence_length or 0
    size = case.samples_of_replica

    def of_epoch(epoch: int) -> Iterator[Arrays]:
        seed = rank_context.seed * 100003 + epoch
        every = batches.of_epoch(data.train, size, rank_context.rank, case.devices, seed)
        for number, batch in enumerate(every):
            yield hidden(batch, length, rank_context.seed, rank_context.rank, epoch, number)

    held_out = hidden(data.held_out, length, _HELD_OUT)
    if task.least_loss:
        percent = model_config["hyperparameters"]["masked_percent"]
        notes = context.fields["task"].setdefault("notes", {})
        notes[LEAST] = task.least_loss(held_out, percent)
    first, _ = next(batches.in_turn(data.train, size))
    return (
        tasks.size(data.train),
        hidden(first, length, rank_context.seed),
        of_epoch,
        lambda: Evaluator(context.adapter, score, held_out, total_of(model_config).of_samples),
    )


class FolderEvaluator(Evaluator):
    """Scores this rank's part of the sequences, and adds up the parts of all ranks."""

    def __init__(self, trained: Any, source: TokenSource, first: Arrays, total: Any) -> None:
        """``first``: a batch of the model's size."""
        self._source, self._of_sums = source, total.of_sums
        super().__init__(trained, score, first, self.of_all_ranks)

    def held_out(self) -> Iterator[Tuple[Arrays, int]]:
        import numpy as np

        asked = self._source.epoch(0, self._batch)
        for batch in self._source.batches(asked, 0):
            count = len(batch["token_ids"])
            chosen = np.arange(self._batch) % count  # the last is filled up with its first ones
            yield {name: array[chosen] for name, array in batch.items()}, count

    def of_all_ranks(self, scored: tasks.Scored) -> Dict[str, float]:
        """From the sums over what all ranks have scored."""
        sums = {name: self._trained.all_reduce(float(v.sum())) for name, v in scored.items()}
        found: Dict[str, float] = self._of_sums(sums)
        return found


def of_folder(context: Context) -> Parts:
    """From texts, tokens or records in a folder, through the framework's own loader. Leaves the
    fields ``task``, ``data_set``, ``loader`` and ``fed``, and raises what reading the data
    raises."""
    adapter, workload, fields = context.adapter, context.workload, context.fields
    require(adapter, Loading)
    case, root = workload.case, workload.data
    assert root is not None, "the declaration has seen to it"
    held_out = TokenSource(context, folder.VALIDATION, WORKERS, seed=_HELD_OUT)
    train = TokenSource(context, folder.TRAIN, WORKERS)
    each = case.samples_of_replica
    begin = train.epoch(0)
    few = held_out.epoch(0, case.batch_per_device)
    identity = folder.identity(root)
    fields["data_set"]["identity"] = identity
    fields["task"] = {
        "name": NAME,
        "sha256": hashlib.sha256(str(identity).encode()).hexdigest(),
        "train": len(begin.starts) * case.layout.replicas,
        "held_out": len(few.starts) * case.layout.replicas,
    }
    alone = tokens.beginning(begin, each)
    fields["fed"] = context.phase("check", lambda: train.fed(alone))
    (first,) = train.batches(alone, 0)
    (scored,) = held_out.batches(tokens.beginning(few, case.batch_per_device), 0)

    def of_epoch(number: int) -> Iterator[Arrays]:
        for batch in train.batches(train.epoch(number), number):
            if len(batch["token_ids"]) == each:  # what is left of an epoch is not fed
                yield batch

    return (
        fields["task"]["train"],
        first,
        of_epoch,
        lambda: FolderEvaluator(adapter, held_out, scored, total_of(workload.model_config)),
    )


def missed(rank: Mapping[str, Any]) -> str:
    """Why a training is worse than a coin, by its entry in the record; "" where the discriminator
    tells more tokens right than wrong, which one does that only knows how rare a replaced one is.
    Raises
    :class:`harness.adapter.Mismatch` where the generator knows more than can be known."""
    scores, notes = rank["curve"][-1]["held_out"], rank["task"].get("notes", {})
    loss, least = scores["generator_loss"], notes.get(LEAST)
    if loss is not None and least is not None and loss < _LEAST * least:
        raise Mismatch(
            f"the generator's loss is {loss:.4f} where none can have less than {least:.4f}: it "
            "sees the words that it is asked for"
        )
    told: Optional[float] = scores["discriminator_accuracy"]
    if told is not None and told < 0.5:
        return f"the discriminator tells {told:.4f} of the tokens right, fewer than half"
    return ""
