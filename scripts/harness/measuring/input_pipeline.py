"""Time steps that get a new batch from the host each, and the share of data loading in them.

The throughput of such a run covers loading and computing together: samples over time, as NVIDIA's
"Total IPS" (global images of an iteration over its mean duration). Two short measurements after the
timed region tell them apart: steps that reuse their batch, and the loader without steps. Each step
records the time until the next batch was ready, and until it was copied.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional

from core.inputs import READING, SYNTHETIC

from harness.batch_input import BatchInput
from harness.kind import Context
from harness.loader import Loading
from harness.measuring import model, token_pipeline
from harness.measuring.synchronous_steps import count_synchronous_steps
from harness.measuring.window import Window, measure
from harness.samples import folder, order, supply

Batch = Dict[str, Any]
Batches = Generator[Batch, None, None]
#: Most worker processes or threads of a loader alongside a step; at most one for each core.
MOST_WORKERS = 8
#: Batches to discard before timing a loader, which has prepared some.
_READY = 2


class PipelineSteps:
    """Steps of an adapter, each with the next of ``batches``.

    ``wait_seconds``: of each step until its batch was ready. ``copy_seconds``: of each step until
    the call that copies it returned. ``noted``: of each batch the array called ``name``."""

    def __init__(self, adapter: BatchInput, batches: Batches, name: str = "labels") -> None:
        self._adapter, self._batches, self._name = adapter, batches, name
        self.wait_seconds: List[float] = []
        self.copy_seconds: List[float] = []
        self.noted: List[Any] = []

    def stop(self) -> None:
        """Stop the loader, which works ahead."""
        self._batches.close()

    def begin(self, batches: Batches) -> None:
        """Continue with other batches. The first goes to an untimed step, because a loader takes
        time to start."""
        self._batches = batches
        self.step()
        self._adapter.synchronize()

    def step(self) -> Any:
        """Run the adapter's step with the next batch."""
        clock = time.perf_counter
        start = clock()
        batch = next(self._batches)
        there = clock()
        self._adapter.feed(batch)
        self.wait_seconds.append(there - start)
        self.copy_seconds.append(clock() - there)
        self.noted.append(batch.get(self._name))
        return self._adapter.step()


class BatchSource:
    """Batches for the steps of a rank; :func:`batch_source` makes it."""

    def __init__(self, first: Batch, batches: Callable[[], Batches], noted: str = "labels") -> None:
        #: Batch that the model is built with; ``batches()`` starts over with it.
        self.first, self.batches = first, batches
        #: Name of the array whose checksum identifies what was loaded.
        self.noted = noted


def batch_source(context: Context) -> Optional[BatchSource]:
    """Return the source of batches; None where the batch stays on the device. Raises errors of
    reading data."""
    case = context.workload.case
    if case.input == SYNTHETIC:
        return None
    if case.input in READING:
        if folder.size_of(context.workload.model_config["inputs"]) is None:
            return BatchSource(*token_pipeline.source(context))
        return _image_source(context)
    batch = model.batch_of_rank(context)

    def repeated() -> Batches:
        while True:
            yield batch

    return BatchSource(batch, repeated)


def _workers(context: Context) -> int:
    """Return the number of the loader's workers."""
    return min(MOST_WORKERS, max(1, len(context.cores) or context.rank_context.threads))


def _image_source(context: Context) -> BatchSource:
    """Return the source that reads the workload's folder of images."""
    import numpy as np

    workload, rank_context, fields = context.workload, context.rank_context, context.fields
    adapter, case, root = context.adapter, workload.case, workload.data
    size = folder.size_of(workload.model_config["inputs"])
    assert root is not None, "the declaration guarantees it"
    assert size is not None, "the declaration guarantees it"
    split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
    images = context.phase("scan", lambda: folder.scan(root, split, workload.bad_images))
    workers = _workers(context)
    if workload.bad_images == folder.SKIP:
        every = range(len(images.paths))
        images = context.phase(
            "trial", lambda: supply.without_broken(adapter, images, every, workers)
        )
    model.check_classes(workload.model_config, len(images.classes))
    fields["data_set"] = folder.report(images)
    fields["loader"] = {"workers": workers, **adapter.loader_settings()}
    rank, ranks = case.layout.replica(rank_context.rank), case.layout.replicas
    samples = case.samples_of_replica

    def epochs() -> Iterator[Any]:
        number = 0
        while True:
            places = order.epoch(images, split, number, rank_context.seed, rank, ranks)
            yield order.loads(
                images, places, split, number, rank_context.seed, samples, size, workers
            )
            number += 1

    def batches() -> Batches:
        for loaded in supply.forever(adapter, epochs(), root):
            yield {"images": loaded.images, "labels": loaded.labels}

    first_load = order.beginning(next(epochs()), samples)._replace(workers=0)
    fields["loader_output"] = context.phase(
        "check", lambda: supply.checked(adapter, first_load, root)
    )
    first = next(supply.batches(adapter, first_load, root))
    return BatchSource({"images": np.array(first.images), "labels": first.labels}, batches)


def time_separately(
    context: Context, source: BatchSource, feed: PipelineSteps, window: Window, read: float
) -> None:
    """Time the same steps without loading, and the loader without steps.

    Stores the field ``input_pipeline``.
    ``feed`` supplied the steps of the timed ``window``; ``read``: seconds of reading a value."""
    adapter, fields = context.adapter, context.fields
    steps = len(window.step_seconds)
    elapsed = sum(fields["phases"].values())
    count = count_synchronous_steps(adapter, window, elapsed)
    feed.stop()
    context.report.enter("steps without loading")
    without_loading = measure(adapter, count, fields["run_ahead"], read, context.barrier)
    fields["phases"]["window_without_input_seconds"] = without_loading.seconds
    fields["input_pipeline"] = {
        "wait_seconds": feed.wait_seconds[-steps:],
        "copy_seconds": feed.copy_seconds[-steps:],
        "compute_step_seconds": without_loading.step_seconds,
    }
    if context.workload.case.input in READING:
        crc = 0
        for array in feed.noted[-steps:]:
            crc = order.checksum(array, crc)
        fields["loader_output"][f"window_{source.noted}_crc32"] = crc
        context.report.enter("loader without steps")
        fields["input_pipeline"].update(_loader_alone(source, count))
        fields["phases"]["loader_seconds"] = fields["input_pipeline"]["loader_seconds"]
    if fields["run_ahead"]:  # synchronous steps with loading follow
        feed.begin(source.batches())


def _loader_alone(source: BatchSource, count: int) -> Dict[str, Any]:
    """Time ``count`` batches of the loader, after the first ones, which it had prepared."""
    batches = source.batches()
    for _ in range(_READY):
        next(batches)
    start = time.perf_counter()
    samples = sum(len(next(batches)[source.noted]) for _ in range(count))
    seconds = time.perf_counter() - start
    batches.close()
    return {"loader_samples": samples, "loader_seconds": seconds}


def capabilities(input_name: str) -> List[type]:
    """Return the capabilities that an adapter needs for an input."""
    if input_name == SYNTHETIC:
        return []
    return [BatchInput, Loading] if input_name in READING else [BatchInput]
