"""Samples of a rank that the framework's loader reads from the files of a folder: images, or
sequences of tokens for language models and for the masked models BERT and ELECTRA."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any, Dict, Generator, Iterator, Optional

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context
from harness.loader import Batch, Loads, TokenLoads
from harness.measuring.synthetic import predictions
from harness.samples import folder, masking, order, tokens

Batches = Generator[Batch, None, None]
#: Most worker processes or threads of a loader during steps; there is also at most one for each
#: core.
MOST_WORKERS = 8


class FileSource(ABC):
    """Samples of a rank, from the case and its data folder.

    Stores ``data_set`` and ``loader`` in the record. Raises errors of reading data, and
    :class:`Mismatch` where the data do not fit the model. :meth:`output` and :meth:`batches` take a
    request of :meth:`epoch`."""

    #: Name of the samples in the record.
    unit: str
    #: Name of an array whose length is the number of samples of a batch.
    noted: str

    def __init__(self, context: Context, split: str, workers: int, most: int = 0) -> None:
        """Scan the data. ``most``: samples of an epoch, 0 for all."""
        case = context.workload.case
        root = context.workload.data
        assert root is not None, "the declaration guarantees it"
        self.context, self.adapter, self.root = context, context.adapter, root
        self.split, self.workers, self.most = split, workers, most
        self.seed, self.samples = context.rank_context.seed, case.samples_of_replica
        self.rank, self.ranks = case.layout.replica(context.rank_context.rank), case.layout.replicas
        context.fields["loader"] = {"workers": workers, **self.adapter.loader_settings()}

    @abstractmethod
    def epoch(self, number: int, samples: Optional[int] = None) -> Any:
        """Return the request to the loader for epoch ``number``, in batches of ``samples``, by
        default those of a step. Raises :class:`harness.samples.folder.BadData` where there are too
        few."""

    @abstractmethod
    def output(self, request: Any) -> Dict[str, Any]:
        """Load all requested samples once and compare them with the request; return their number
        and checksums for the record."""

    @abstractmethod
    def batches(self, request: Any, number: int) -> Iterator[Batch]:
        """Yield all batches of epoch ``number`` as a step takes them; the last may have fewer
        samples."""

    def whole_batches(self, number: int) -> Iterator[Batch]:
        """Yield the whole batches of an epoch; the rest of the samples is dropped."""
        for batch in self.batches(self.epoch(number), number):
            if len(batch[self.noted]) == self.samples:
                yield batch

    def endless(self) -> Batches:
        """Yield whole batches of one epoch after the other."""
        for number in itertools.count():
            yield from self.whole_batches(number)

    def first(self) -> Batch:
        """Return the first batch of the first epoch, and store the result of its check as
        ``loader_output``."""
        import numpy as np

        alone = self.epoch(0).beginning(self.samples)._replace(workers=0)
        output = self.context.phase("check", lambda: self.output(alone))
        self.context.fields["loader_output"] = output
        (batch,) = self.batches(alone, 0)
        return {name: np.array(array) for name, array in batch.items()}


class ImageSource(FileSource):
    """Images of a split. ``images``: their list."""

    unit, noted = "images", "labels"

    def __init__(self, context: Context, split: str, workers: int, most: int = 0) -> None:
        super().__init__(context, split, workers, most)
        workload, fields = context.workload, context.fields
        size = folder.size_of(workload.model_config["inputs"])
        assert size is not None, "file_source guarantees it"
        self.size = size
        images = context.phase("scan", lambda: folder.scan(self.root, split))
        self.images = images
        fields["data_set"] = {"images": len(images.paths), "classes": len(images.classes)}

    def epoch(self, number: int, samples: Optional[int] = None) -> Loads:
        images, split = self.images, self.split
        of_rank = (split, number, self.seed, self.rank, self.ranks, self.most)
        places = order.places_of(len(images.paths), *of_rank)
        size_and_workers = (samples or self.samples, self.size, self.workers)
        return order.loads(images, places, split, number, self.seed, *size_and_workers)

    def output(self, request: Loads) -> Dict[str, Any]:
        return order.checked(self.adapter, request, self.root)

    def batches(self, request: Loads, number: int) -> Iterator[Batch]:
        return order.batches(self.adapter, request, self.root)


class TokenSource(FileSource):
    """Token sequences."""

    unit = "sequences"

    def __init__(
        self,
        context: Context,
        split: str,
        workers: int,
        most: int = 0,
        seed: Optional[int] = None,
    ) -> None:
        """Scan the data. ``seed``: seed of the masks, None for the run's."""
        super().__init__(context, split, workers, most)
        workload, fields = context.workload, context.fields
        length, hyper = workload.case.sequence_length, workload.model_config["hyperparameters"]
        assert length is not None, "the declaration guarantees it"
        self._length, self._mask_seed = length, self.seed if seed is None else seed
        self._tokens = context.phase("scan", lambda: tokens.scan(self.root, split))
        known, size = hyper["vocabulary"], self._tokens.vocabulary
        if size > known:
            model = workload.model_config["name"]
            raise Mismatch(f"the data have {size} tokens, {model} has {known}")
        form = masking.form_of(workload.model_config["inputs"])
        self._is_running = form == masking.RUNNING
        self.noted = "labels" if self._is_running else "token_ids"
        self._plan = masking.MaskingPlan(form, length, predictions(length))
        if not self._is_running:
            masking.check(self._tokens, self._plan, hyper)
        vocab = self._tokens.vocab
        fields["data_set"] = {
            "tokens": self._tokens.length,
            "vocabulary": size,
            "tokenizer": vocab and f"WordPiece, {'cased' if vocab.cased else 'uncased'}",
        }

    def epoch(self, number: int, samples: Optional[int] = None) -> TokenLoads:
        marks, beyond = (0, 1) if self._is_running else (masking.MARKS, 0)
        of_rank = (self.split, number, self.seed, self.rank, self.ranks, self._length - marks)
        of_batches = (samples or self.samples, self.workers, beyond, self.most)
        return tokens.loads(self._tokens, *of_rank, *of_batches)

    def output(self, request: TokenLoads) -> Dict[str, Any]:
        return tokens.checked(self.adapter, request)

    def batches(self, request: TokenLoads, number: int) -> Iterator[Batch]:
        for before, loaded in tokens.batches(self.adapter, request):
            yield self._batch(loaded, number, before)

    def _batch(self, loaded: Any, number: int, before: int) -> Batch:
        import numpy as np

        if self._is_running:
            inputs, following = loaded[:, :-1], loaded[:, 1:]
            return {
                "token_ids": np.ascontiguousarray(inputs),
                "labels": np.ascontiguousarray(following),
            }
        random = np.random.RandomState([self._mask_seed, self.rank, number, before])
        return masking.batch_of(np.asarray(loaded), self._tokens, self._plan, random)


def workers_of(context: Context) -> int:
    """Return the number of the loader's workers during steps.

    Sequences have none: they are slices of a file in memory, and workers forked in quick succession
    have been seen to hang in PaddlePaddle and MXNet."""
    if folder.size_of(context.workload.model_config["inputs"]) is None:
        return 0
    return min(MOST_WORKERS, max(1, len(context.cores) or context.rank_context.threads))


def file_source(context: Context, split: str, workers: int, most: int = 0) -> FileSource:
    """Return the source of a model's samples. Raises :class:`Unsupported` for a model without any
    that are read from files."""
    inputs = context.workload.model_config["inputs"]
    if folder.size_of(inputs) is not None:
        return ImageSource(context, split, workers, most)
    if not masking.form_of(inputs):
        model = context.workload.case.model
        raise Unsupported(f"{model} has neither images nor tokens that are read from files")
    return TokenSource(context, split, workers, most)
