"""Steps that are given sequences of tokens from files: those that models of running text are given
with the tokens that come next, and those of BERT and ELECTRA, some of whose words are hidden."""

from __future__ import annotations

import itertools
import os
from typing import Any, Callable, Dict, Generator, Iterator, Optional, Tuple

from harness.adapter import Mismatch
from harness.kind import Context
from harness.loader import LoadedTokens, TokenLoads
from harness.measuring.synthetic import predictions
from harness.samples import folder, masking, tokens

Batch = Dict[str, Any]
Batches = Generator[Batch, None, None]
#: A sequence is a slice of a file in memory, or a small record: the one that asks takes it itself.
#: Workers that are forked so soon behind each other have been seen to hang in PaddlePaddle and
#: MXNet.
WORKERS = 0
#: What a loader says of itself that is no matter of images.
_SETTINGS = ("loader", "workers_are", "pin_memory")


class TokenSource:
    """Of a rank, by what the case and its folder of data say. Leaves ``data_set`` and ``loader`` in
    the record. Raises what reading the data raises, and :class:`Mismatch` where they are not for
    the model."""

    def __init__(
        self,
        context: Context,
        split: str,
        workers: int,
        most: int = 0,
        seed: Optional[int] = None,
    ) -> None:
        """``most``: sequences of an epoch, 0 for all; ``seed``: by which words are hidden, None for
        that of the run."""
        workload, adapter, fields = context.workload, context.adapter, context.fields
        self._context, self._split, self._workers, self._most = context, split, workers, most
        self._seed = context.rank_context.seed if seed is None else seed
        self._rank = workload.case.layout.replica(context.rank_context.rank)
        root, length = workload.data, workload.case.sequence_length
        assert root is not None, "the declaration has seen to it"
        assert length is not None, "the declaration has seen to it"
        self._length, self._hyper = length, workload.facts["hyperparameters"]
        known = self._hyper["vocabulary"]
        self.found = context.phase(
            "scan",
            lambda: tokens.scan(root, split, workload.bad_images, os.path.abspath("."), known),
        )
        if self.found.vocabulary > known:
            model, size = workload.facts["name"], self.found.vocabulary
            raise Mismatch(f"the data have {size} tokens, {model} has {known}")
        #: Behind the largest token that may come.
        self._known = self.found.vocabulary or known
        self.form = masking.form_of(workload.facts["inputs"])
        if self.form == masking.RUNNING and self.found.records is not None:
            raise folder.BadData(
                f"{root}: its records are sequences for BERT and ELECTRA; {workload.case.model} "
                "reads texts or token files"
            )
        self._wanted = self._masked()
        fields["data_set"] = tokens.report(self.found)
        said = adapter.loader_settings()
        fields["loader"] = {"workers": workers, **{k: said[k] for k in _SETTINGS if k in said}}

    @property
    def noted(self) -> str:
        """The array of a batch whose checksum tells what was fed."""
        return "labels" if self.form == masking.RUNNING else "token_ids"

    def _masked(self) -> masking.Wanted:
        count = predictions(self._length)
        wanted = masking.Wanted(self.form, self._length, count)
        if self.form != masking.RUNNING:
            masking.check(self.found, wanted, self._hyper)
        return wanted

    def epoch(self, number: int, samples: Optional[int] = None) -> TokenLoads:
        """What the loader is asked for, in batches of so many ``samples``, None for those of a
        step. Raises :class:`harness.samples.folder.BadData` where it is too little."""
        context, case = self._context, self._context.workload.case
        marks = 0 if self.form == masking.RUNNING else masking.MARKS
        order = (self.found, self._split, number, context.rank_context.seed)
        samples = samples or case.samples_of_replica
        beyond = 1 if self.form == masking.RUNNING else 0
        return tokens.loads(
            *order,
            self._rank,
            case.layout.replicas,
            self._length - marks,
            samples,
            self._workers,
            beyond,
            self._most,
        )

    def fed(self, asked: TokenLoads) -> Dict[str, Any]:
        """What the loader gives, compared with the files; see
        :func:`harness.samples.tokens.checked`."""
        return tokens.checked(self._context.adapter, asked, self._known)

    def batches(self, asked: TokenLoads, number: int) -> Iterator[Batch]:
        """All batches of an epoch as a step takes them; the last may have fewer samples."""
        for loaded in tokens.batches(self._context.adapter, asked, self._known):
            yield self._batch(loaded, number)

    def _batch(self, loaded: LoadedTokens, number: int) -> Batch:
        import numpy as np

        if self.form == masking.RUNNING:
            inputs, following = loaded.tokens[:, :-1], loaded.tokens[:, 1:]
            return {
                "token_ids": np.ascontiguousarray(inputs),
                "labels": np.ascontiguousarray(following),
            }
        first = int(loaded.numbers[0])
        random = np.random.RandomState([self._seed, self._rank, number, first])
        return masking.batch_of(np.asarray(loaded.tokens), self.found, self._wanted, random)


def source(context: Context) -> Tuple[Batch, Callable[[], Batches], str]:
    """The first batch, what begins anew with it, and the name of the array that tells what was fed.
    Raises what reading the data raises."""
    case, fields = context.workload.case, context.fields
    split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
    own = TokenSource(context, split, WORKERS)
    samples = case.samples_of_replica

    def batches() -> Batches:
        for number in itertools.count():
            for batch in own.batches(own.epoch(number), number):
                if len(batch["token_ids"]) == samples:  # what is left of an epoch is not fed
                    yield batch

    begin = own.epoch(0)
    alone = tokens.beginning(begin, samples)
    fields["fed"] = context.phase("check", lambda: own.fed(alone))
    (first,) = own.batches(alone, 0)
    return first, batches, own.noted
