"""Samples of a rank that the framework's loader reads from files, and steps that each get a new
batch from the host.

The throughput of such a run covers loading and computing together: samples over time, as NVIDIA's
"Total IPS" (global images of an iteration over its mean duration). Two short measurements after the
timed region tell them apart: steps that reuse their batch, and the loader without steps. Each step
records the time until the next batch was ready, and until it was copied."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional

from core.axes import READING, SYNTHETIC

from harness.adapter import Mismatch, Unsupported, require
from harness.capabilities import BatchInput
from harness.kind import Context
from harness.loader import Batch, Loading, Loads, TokenLoads
from harness.measuring import model
from harness.measuring.window import measure
from harness.samples import folder, tokens

Batches = Generator[Batch, None, None]
#: Most worker processes or threads of a loader during steps; there is also at most one for each
#: core.
MOST_WORKERS = 8
#: Batches to discard before timing a loader, because it has prepared them in advance.
_READY = 2


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
        places = folder.places_of(len(images.paths), *of_rank)
        size_and_workers = (samples or self.samples, self.size, self.workers)
        return folder.loads(images, places, split, number, self.seed, *size_and_workers)

    def output(self, request: Loads) -> Dict[str, Any]:
        return folder.checked(self.adapter, request, self.root)

    def batches(self, request: Loads, number: int) -> Iterator[Batch]:
        return folder.batches(self.adapter, request, self.root)


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
            name = workload.model_config["name"]
            raise Mismatch(f"the data have {size} tokens, {name} has {known}")
        form = tokens.form_of(workload.model_config["inputs"])
        self._is_running = form == tokens.RUNNING
        self.noted = "labels" if self._is_running else "token_ids"
        self._plan = tokens.MaskingPlan(form, length, model.predictions(length))
        if not self._is_running:
            tokens.check(self._tokens, self._plan, hyper)
        vocab = self._tokens.vocab
        fields["data_set"] = {
            "tokens": self._tokens.length,
            "vocabulary": size,
            "tokenizer": vocab and f"WordPiece, {'cased' if vocab.cased else 'uncased'}",
        }

    def epoch(self, number: int, samples: Optional[int] = None) -> TokenLoads:
        marks, beyond = (0, 1) if self._is_running else (tokens.MARKS, 0)
        of_rank = (self.split, number, self.seed, self.rank, self.ranks, self._length - marks)
        of_batches = (samples or self.samples, self.workers, beyond, self.most)
        return tokens.loads(self._tokens, *of_rank, *of_batches)

    def output(self, request: TokenLoads) -> Dict[str, Any]:
        return tokens.checked(self.adapter, request)

    def batches(self, request: TokenLoads, number: int) -> Iterator[Batch]:
        loaded = self.adapter.load(request)
        for before, batch in folder.each_once(loaded, len(request.starts), self.unit):
            yield self._batch(batch["tokens"], number, before)

    def _batch(self, loaded: Any, number: int, before: int) -> Batch:
        import numpy as np

        if self._is_running:
            inputs, following = loaded[:, :-1], loaded[:, 1:]
            return {
                "token_ids": np.ascontiguousarray(inputs),
                "labels": np.ascontiguousarray(following),
            }
        random = np.random.RandomState([self._mask_seed, self.rank, number, before])
        return tokens.batch_of(np.asarray(loaded), self._tokens, self._plan, random)


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
    if not tokens.form_of(inputs):
        model = context.workload.case.model
        raise Unsupported(f"{model} has neither images nor tokens that are read from files")
    return TokenSource(context, split, workers, most)


class PipelineSteps:
    """Steps of an adapter, each with a new batch.

    ``first``: the batch that the model is built with; ``batches()`` starts over with it.
    ``wait_seconds``: seconds of each step until its batch was ready. ``copy_seconds``: seconds of
    each step until the call that copies it returned."""

    def __init__(self, adapter: BatchInput, first: Batch, batches: Callable[[], Batches]) -> None:
        self.first, self.batches = first, batches
        self._adapter, self._current = adapter, batches()
        self.wait_seconds: List[float] = []
        self.copy_seconds: List[float] = []

    def stop(self) -> None:
        """Stop the loader, which works ahead."""
        self._current.close()

    def begin(self) -> None:
        """Start over. The first batch goes to an untimed step, because a loader takes time to
        start."""
        self._current = self.batches()
        self.step()
        self._adapter.synchronize()

    def step(self) -> Any:
        clock = time.perf_counter
        start = clock()
        batch = next(self._current)
        there = clock()
        self._adapter.feed(batch)
        self.wait_seconds.append(there - start)
        self.copy_seconds.append(clock() - there)
        return self._adapter.step()


def pipeline_steps(context: Context) -> Optional[PipelineSteps]:
    """Return the steps of a case whose batches come from the host; None where the batch stays on
    the device. Raises errors of reading data."""
    case, adapter = context.workload.case, context.adapter
    if case.input == SYNTHETIC:
        return None
    require(adapter, BatchInput)
    if case.input in READING:
        require(adapter, Loading)
        split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
        source = file_source(context, split, workers_of(context))
        if isinstance(source, ImageSource):
            model.check_classes(context.workload.model_config, len(source.images.classes))
        return PipelineSteps(adapter, source.first(), source.endless)
    batch = model.batch_of_rank(context)
    return PipelineSteps(adapter, batch, lambda: (batch for _ in itertools.count()))


def time_separately(context: Context, feed: PipelineSteps, count: int, read_seconds: float) -> None:
    """Time ``count`` of the same steps without loading, and the loader without steps.

    Stores the field ``input_pipeline``. ``feed``: steps of the timed region; ``read_seconds``:
    seconds of reading a value."""
    adapter, fields = context.adapter, context.fields
    steps = len(fields["step_seconds"])
    feed.stop()
    context.report.enter("steps without loading")
    without_loading = measure(adapter, count, fields["run_ahead"], read_seconds, context.barrier)
    fields["phases"]["window_without_input_seconds"] = without_loading.seconds
    fields["input_pipeline"] = {
        "wait_seconds": feed.wait_seconds[-steps:],
        "copy_seconds": feed.copy_seconds[-steps:],
        "compute_step_seconds": without_loading.step_seconds,
    }
    if context.workload.case.input in READING:
        context.report.enter("loader without steps")
        seconds = fields["phases"]["loader_seconds"] = _loader_alone(feed.batches(), count)
        samples = count * context.workload.case.samples_of_replica
        fields["input_pipeline"].update(loader_samples=samples, loader_seconds=seconds)
    if fields["run_ahead"]:  # time synchronous steps with loading, too
        feed.begin()


def _loader_alone(batches: Batches, count: int) -> float:
    """Return the seconds of ``count`` batches of the loader, without the first batches, which it
    has prepared in advance."""
    for _ in range(_READY):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        next(batches)
    seconds = time.perf_counter() - start
    batches.close()
    return seconds
