"""Batches of token sequences from files, for language models and for the masked models BERT and
ELECTRA."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Generator, Iterator, Optional, Tuple

from harness.adapter import Mismatch
from harness.kind import Context
from harness.loader import LoadedTokens, TokenLoads
from harness.measuring.synthetic import predictions
from harness.samples import folder, masking, tokens

Batch = Dict[str, Any]
Batches = Generator[Batch, None, None]
#: Worker processes: none, because a sequence is a slice of a file in memory.
#: Workers forked in quick succession have been seen to hang in PaddlePaddle and MXNet.
WORKERS = 0
#: Settings of a loader that do not concern images.
_SETTINGS = ("loader", "workers_are", "pin_memory")


class TokenSource:
    """Token sequences of a rank, from the case and its data folder.

    Stores ``data_set`` and ``loader`` in the record. Raises errors of reading data, and
    :class:`Mismatch` where the data do not fit the model."""

    def __init__(
        self,
        context: Context,
        split: str,
        workers: int,
        most: int = 0,
        seed: Optional[int] = None,
    ) -> None:
        """Scan the data. ``most``: sequences of an epoch, 0 for all; ``seed``: of the masks, None
        for that of the run."""
        workload, adapter, fields = context.workload, context.adapter, context.fields
        self._context, self._split, self._workers, self._most = context, split, workers, most
        self._seed = context.rank_context.seed if seed is None else seed
        self._rank = workload.case.layout.replica(context.rank_context.rank)
        root, length = workload.data, workload.case.sequence_length
        assert root is not None, "the declaration guarantees it"
        assert length is not None, "the declaration guarantees it"
        self._length, self._hyper = length, workload.model_config["hyperparameters"]
        known = self._hyper["vocabulary"]
        self.tokens_found = context.phase("scan", lambda: tokens.scan(root, split))
        if self.tokens_found.vocabulary > known:
            model, size = workload.model_config["name"], self.tokens_found.vocabulary
            raise Mismatch(f"the data have {size} tokens, {model} has {known}")
        self.form = masking.form_of(workload.model_config["inputs"])
        self._masking = self._masked()
        fields["data_set"] = tokens.report(self.tokens_found)
        loader_settings = adapter.loader_settings()
        fields["loader"] = {
            "workers": workers,
            **{k: loader_settings[k] for k in _SETTINGS if k in loader_settings},
        }

    @property
    def noted(self) -> str:
        """Name of the array whose checksum identifies what was loaded."""
        return "labels" if self.form == masking.RUNNING else "token_ids"

    def _masked(self) -> masking.MaskingPlan:
        count = predictions(self._length)
        masking_plan = masking.MaskingPlan(self.form, self._length, count)
        if self.form != masking.RUNNING:
            masking.check(self.tokens_found, masking_plan, self._hyper)
        return masking_plan

    def epoch(self, number: int, samples: Optional[int] = None) -> TokenLoads:
        """Return the request to the loader for epoch ``number``, in batches of ``samples``, by
        default those of a step. Raises :class:`harness.samples.folder.BadData` where there are too
        few."""
        context, case = self._context, self._context.workload.case
        marks = 0 if self.form == masking.RUNNING else masking.MARKS
        order = (self.tokens_found, self._split, number, context.rank_context.seed)
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

    def output(self, request: TokenLoads) -> Dict[str, Any]:
        """Compare what the loader gives with the files; see
        :func:`harness.samples.tokens.checked`."""
        return tokens.checked(self._context.adapter, request)

    def batches(self, request: TokenLoads, number: int) -> Iterator[Batch]:
        """Yield all batches of an epoch as a step takes them; the last may have fewer samples."""
        for loaded in tokens.batches(self._context.adapter, request):
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
        return masking.batch_of(np.asarray(loaded.tokens), self.tokens_found, self._masking, random)


def source(context: Context) -> Tuple[Batch, Callable[[], Batches], str]:
    """Return the first batch, a function that yields all batches from that one on, and the name of
    the array to checksum. Raises errors of reading data."""
    case, fields = context.workload.case, context.fields
    split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
    own = TokenSource(context, split, WORKERS)
    samples = case.samples_of_replica

    def batches() -> Batches:
        for number in itertools.count():
            for batch in own.batches(own.epoch(number), number):
                if len(batch["token_ids"]) == samples:  # the rest of an epoch is dropped
                    yield batch

    begin = own.epoch(0)
    alone = tokens.beginning(begin, samples)
    fields["loader_output"] = context.phase("check", lambda: own.output(alone))
    (first,) = own.batches(alone, 0)
    return first, batches, own.noted
