"""Time steps that each get a new batch from the host, and the share of data loading in them.

The throughput of such a run covers loading and computing together: samples over time, as NVIDIA's
"Total IPS" (global images of an iteration over its mean duration). Two short measurements after the
timed region tell them apart: steps that reuse their batch, and the loader without steps. Each step
records the time until the next batch was ready, and until it was copied.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List, NamedTuple, Optional

from core.axes import READING, SYNTHETIC

from harness.batch_input import BatchInput
from harness.kind import Context
from harness.loader import Batch, Loading
from harness.measuring import model
from harness.measuring.file_sources import Batches, ImageSource, file_source, workers_of
from harness.measuring.step_counts import synchronous_steps
from harness.measuring.window import Window, measure
from harness.samples import folder

#: Batches to discard before timing a loader, which has prepared some.
_READY = 2


class PipelineSteps:
    """Steps of an adapter, each with the next of ``batches``.

    ``wait_seconds``: seconds of each step until its batch was ready. ``copy_seconds``: seconds of
    each step until the call that copies it returned."""

    def __init__(self, adapter: BatchInput, batches: Batches) -> None:
        self._adapter, self._batches = adapter, batches
        self.wait_seconds: List[float] = []
        self.copy_seconds: List[float] = []

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
        return self._adapter.step()


class BatchSource(NamedTuple):
    """Source of batches for the steps of a rank, made by :func:`batch_source`.

    ``first``: the batch that the model is built with; ``batches()`` starts over with it."""

    first: Batch
    batches: Callable[[], Batches]


def batch_source(context: Context) -> Optional[BatchSource]:
    """Return the source of batches; None where the batch stays on the device. Raises errors of
    reading data."""
    case = context.workload.case
    if case.input == SYNTHETIC:
        return None
    if case.input in READING:
        split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
        source = file_source(context, split, workers_of(context))
        if isinstance(source, ImageSource):
            model.check_classes(context.workload.model_config, len(source.images.classes))
        return BatchSource(source.first(), source.endless)
    batch = model.batch_of_rank(context)

    def repeated() -> Batches:
        while True:
            yield batch

    return BatchSource(batch, repeated)


def time_separately(
    context: Context, source: BatchSource, feed: PipelineSteps, window: Window, read: float
) -> None:
    """Time the same steps without loading, and the loader without steps.

    Stores the field ``input_pipeline``.
    ``feed`` supplied the steps of the timed ``window``; ``read``: seconds of reading a value."""
    adapter, fields = context.adapter, context.fields
    steps = len(window.step_seconds)
    count = synchronous_steps(adapter, steps, window.seconds, sum(fields["phases"].values()))
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
        context.report.enter("loader without steps")
        seconds = fields["phases"]["loader_seconds"] = _loader_alone(source, count)
        samples = count * context.workload.case.samples_of_replica
        fields["input_pipeline"].update(loader_samples=samples, loader_seconds=seconds)
    if fields["run_ahead"]:  # time synchronous steps with loading, too
        feed.begin(source.batches())


def _loader_alone(source: BatchSource, count: int) -> float:
    """Return the seconds of ``count`` batches of the loader, after the first ones, which it had
    prepared."""
    batches = source.batches()
    for _ in range(_READY):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        next(batches)
    seconds = time.perf_counter() - start
    batches.close()
    return seconds


def capabilities(input_name: str) -> List[type]:
    """Return the capabilities that an adapter needs for an input."""
    if input_name == SYNTHETIC:
        return []
    return [BatchInput, Loading] if input_name in READING else [BatchInput]
