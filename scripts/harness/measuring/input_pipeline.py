"""Steps that are given a batch from the host before each: what of their time is loading.

The throughput of such a run is that of both together: samples over the window, as NVIDIA's
"Total IPS" (global images of an iteration over its mean duration). Behind the window two short ones
tell them apart: steps that compute with the batch that they have, and a loader with nothing behind
it. The time until the loader's next batch was there, and until it was copied, is noted at each
step.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional

from harness.batch_input import BatchInput
from harness.inputs import READING, SYNTHETIC
from harness.kind import Context
from harness.loader import Loading
from harness.measuring import model, token_pipeline
from harness.measuring.synchronous_steps import count_synchronous_steps
from harness.measuring.window import Window, measure
from harness.samples import folder, order, supply

Batch = Dict[str, Any]
Batches = Generator[Batch, None, None]
#: Worker processes or threads of a loader beside a step: one for each core of the rank, at most.
MOST_WORKERS = 8
#: Batches that a loader gives before its rate is taken: it has some ready.
_READY = 2


class Feed:
    """Steps of an adapter, each with the next of ``batches``. Seconds of each step: until its batch
    was there, and until the call that copies it had returned; ``noted``: of each batch the array
    of this ``name``."""

    def __init__(self, adapter: BatchInput, batches: Batches, name: str = "labels") -> None:
        self._adapter, self._batches, self._name = adapter, batches, name
        self.wait_seconds: List[float] = []
        self.copy_seconds: List[float] = []
        self.noted: List[Any] = []

    def stop(self) -> None:
        """End the loader, which works ahead."""
        self._batches.close()

    def begin(self, batches: Batches) -> None:
        """Go on with other batches, of which one is fed to a step that is not timed: a loader
        takes its time to start."""
        self._batches = batches
        self.step()
        self._adapter.synchronize()

    def step(self) -> Any:
        """In the place of the adapter's own."""
        clock = time.perf_counter
        start = clock()
        batch = next(self._batches)
        there = clock()
        self._adapter.feed(batch)
        self.wait_seconds.append(there - start)
        self.copy_seconds.append(clock() - there)
        self.noted.append(batch.get(self._name))
        return self._adapter.step()


class Source:
    """What the steps of a rank are fed with; see :func:`source_of`."""

    def __init__(self, first: Batch, batches: Callable[[], Batches], noted: str = "labels") -> None:
        #: With which the model is built; the first of ``batches()``, which begins anew.
        self.first, self.batches = first, batches
        #: The array of a batch whose checksum tells what was fed.
        self.noted = noted


def source_of(context: Context) -> Optional[Source]:
    """None where the batch lies on the device. Raises what reading the data raises."""
    case = context.workload.case
    if case.input == SYNTHETIC:
        return None
    if case.input in READING:
        if folder.size_of(context.workload.facts["inputs"]) is None:
            return Source(*token_pipeline.source(context))
        return _of_files(context)
    batch = model.batch_of_rank(context)

    def same() -> Batches:
        while True:
            yield batch

    return Source(batch, same)


def _workers(context: Context) -> int:
    return min(MOST_WORKERS, max(1, len(context.cores) or context.rank_context.threads))


def _of_files(context: Context) -> Source:
    workload, rank_context, fields = context.workload, context.rank_context, context.fields
    adapter, case, root = context.adapter, workload.case, workload.data
    size = folder.size_of(workload.facts["inputs"])
    assert root is not None, "the declaration has seen to it"
    assert size is not None, "the declaration has seen to it"
    split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
    images = context.phase("scan", lambda: folder.scan(root, split, workload.bad_images))
    workers = _workers(context)
    if workload.bad_images == folder.SKIP:
        every = range(len(images.paths))
        images = context.phase(
            "trial", lambda: supply.without_broken(adapter, images, every, workers)
        )
    model.check_classes(workload.facts, len(images.classes))
    fields["data_set"] = folder.report(images)
    fields["loader"] = {"workers": workers, **adapter.loader_settings(images.format)}
    rank, ranks = case.layout.replica(rank_context.rank), case.layout.replicas
    samples = case.batch_per_device * case.accumulation

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

    alone = order.beginning(next(epochs()), samples)._replace(workers=0)
    fields["fed"] = context.phase("check", lambda: supply.checked(adapter, alone, root))
    (first,) = supply.batches(adapter, alone, root)
    return Source({"images": first.images, "labels": first.labels}, batches)


def apart(context: Context, source: Source, feed: Feed, window: Window, read: float) -> None:
    """Behind the window, whose steps ``feed`` has fed: the same steps without, and the loader
    without steps. ``read``: seconds of reading a value. Left as the field ``feeding``."""
    adapter, fields = context.adapter, context.fields
    steps = len(window.step_seconds)
    elapsed = sum(fields["phases"].values())
    count = count_synchronous_steps(adapter, window, elapsed)
    feed.stop()
    context.report.enter("window without feeding")
    alone = measure(adapter, count, fields["run_ahead"], read, context.barrier)
    fields["phases"]["window_without_feeding_seconds"] = alone.seconds
    fields["feeding"] = {
        "wait_seconds": feed.wait_seconds[-steps:],
        "copy_seconds": feed.copy_seconds[-steps:],
        "compute_step_seconds": alone.step_seconds,
    }
    if context.workload.case.input in READING:
        crc = 0
        for array in feed.noted[-steps:]:
            crc = order.checksum(array, crc)
        fields["fed"][f"window_{source.noted}_crc32"] = crc
        context.report.enter("loader without steps")
        fields["feeding"].update(_loader_alone(source, count))
        fields["phases"]["loader_seconds"] = fields["feeding"]["loader_seconds"]
    if fields["run_ahead"]:  # a window of steps that are fed and waited for is to come
        feed.begin(source.batches())


def _loader_alone(source: Source, count: int) -> Dict[str, Any]:
    """So many batches behind the first ones, which had time to become ready."""
    batches = source.batches()
    for _ in range(_READY):
        next(batches)
    start = time.perf_counter()
    samples = sum(len(next(batches)[source.noted]) for _ in range(count))
    seconds = time.perf_counter() - start
    batches.close()
    return {"loader_samples": samples, "loader_seconds": seconds}


def capabilities(input_name: str) -> List[type]:
    """What an adapter must have for an input."""
    if input_name == SYNTHETIC:
        return []
    return [BatchInput, Loading] if input_name in READING else [BatchInput]
