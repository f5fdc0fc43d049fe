"""Build a model, warm up, and time its steps: first running ahead, then one by one."""

from __future__ import annotations

import resource
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from harness.adapter import Adapter, require
from harness.hardware import file_entry
from harness.kind import Context, Metric, Workload
from harness.measuring import input_pipeline, model
from harness.measuring.checks import check_cores, check_value, compiler_evidence
from harness.measuring.step_counts import (
    all_settled,
    settled_after,
    synchronous_steps,
    timed_steps,
)
from harness.measuring.window import Window, measure, run_ahead

#: Most reasons of recompilations that are named.
MOST_NAMED = 20


def samples(workload: Workload, rank: Mapping[str, Any]) -> int:
    """Return the number of samples that all ranks together compute in the timed region. ``rank``: a
    rank's fields in the record. Requests for text have no ``step_seconds``."""
    timed = len(rank["step_seconds"]) if "step_seconds" in rank else workload.timed_steps
    return workload.case.samples_per_step * timed


def throughput(workload: Workload) -> Metric:
    """Return the metric of global samples per second.

    The slowest rank's time counts, because samples are done when the last rank is."""
    return Metric(
        unit=workload.model_config["unit"],
        better="higher",
        combine="min",
        rank_value=lambda rank: samples(workload, rank) / rank["window_seconds"],
    )


def peak_host_memory() -> int:
    """Return the peak resident memory of this process in bytes."""
    peak = file_entry("/proc/self/status", "VmHWM")
    if peak:
        return int(peak.split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class WarmUp(NamedTuple):
    """Number of warm-up steps, and the seconds that reading the first value took."""

    steps: int
    read_seconds: float


def warm_up(
    adapter: Adapter,
    mode: str,
    steps: int,
    limit: Optional[int],
    fields: Dict[str, Any],
    step: Optional[Callable[[], Any]] = None,
) -> WarmUp:
    """Run ``steps`` steps one at a time, then more until the step time settles.

    ``limit``: most steps; None runs no more than ``steps``. ``step``: replaces the adapter's own.
    ``fields`` gets the seconds of the steps, the first value, and the number of steps until the
    step time had settled (None if it did not)."""
    seconds: List[float] = []
    read_seconds = 0.0
    fields["warmup_step_seconds"] = seconds
    fields["settled_after"] = None
    for number in range(1, (limit or steps) + 1):
        adapter.synchronize()
        start = time.perf_counter()
        handle = step() if step else adapter.step()
        adapter.synchronize()
        seconds.append(time.perf_counter() - start)
        if number == 1:
            start = time.perf_counter()
            fields["first_value"] = adapter.read(handle)
            read_seconds = time.perf_counter() - start
            check_value(fields["first_value"], mode, number)
        if limit and number >= steps and all_settled(adapter, seconds, number == limit):
            fields["settled_after"] = number
            break
    if not limit:
        fields["settled_after"] = settled_after(seconds)
    return WarmUp(len(seconds), read_seconds)


def run(context: Context) -> None:
    """Run all phases of a run that times steps, in the order of the adapter's contract.

    Raises what the adapter raises, and Mismatch where the executed work is not the requested
    work."""
    adapter, workload, fields = context.adapter, context.workload, context.fields
    mode = workload.case.mode
    require(adapter, *input_pipeline.capabilities(workload.case.input))
    source = input_pipeline.batch_source(context)
    model.build(context, source.first if source else model.batch_of_rank(context))
    feed = input_pipeline.PipelineSteps(adapter, source.batches()) if source else None
    step = feed.step if feed else None
    counts = (workload.warmup_steps, workload.warmup_limit)
    warmed = context.phase(
        "warm-up", lambda: warm_up(adapter, mode, *counts, fields, step), "warmup"
    )
    fields["compiled"] = compiler_evidence(adapter)
    fields["cores"] = check_cores(context.cores)
    context.report.enter("timed window")
    ahead = fields["run_ahead"] = run_ahead(adapter)
    read_seconds, barrier = warmed.read_seconds, context.barrier
    own = (workload.timed_steps, workload.timed_seconds, fields["warmup_step_seconds"])
    timed = timed_steps(adapter, *own)
    known = len(recompilations(adapter))
    window = measure(adapter, timed, ahead, read_seconds, barrier, step)
    note_recompilations(adapter, known, fields)
    fields["phases"]["window_seconds"] = window.seconds
    note_window(adapter, window, warmed.steps + timed, fields)
    if source and feed:
        input_pipeline.time_separately(context, source, feed, window, read_seconds)
    if ahead:
        context.report.enter("synchronous steps")
        elapsed = sum(fields["phases"].values())
        count = synchronous_steps(adapter, timed, window.seconds, elapsed)
        waited = measure(adapter, count, 0, read_seconds, barrier, step)
        fields["waited_step_seconds"] = waited.step_seconds
        fields["phases"]["waited_window_seconds"] = waited.seconds
    context.report.enter("end")


def recompilations(adapter: Adapter) -> Sequence[str]:
    """Return the reasons for the compiler's recompilations since the process started."""
    return () if adapter.case.compiler == "none" else adapter.recompilations()


def note_recompilations(adapter: Adapter, known: int, fields: Dict[str, Any]) -> None:
    """Put the recompilations within the timed region, if any, into ``fields``, with new evidence: a
    compiler that compiled too often leaves the rest to eager mode. ``known``: number of
    recompilations before the region."""
    reasons = recompilations(adapter)[known:]
    if reasons:
        named = list(dict.fromkeys(reasons))[:MOST_NAMED]
        within = {"count": len(reasons), "reasons": named}
        fields["compiled"] = {**compiler_evidence(adapter), "recompiled_in_window": within}


def note_window(adapter: Adapter, window: Window, step: int, fields: Dict[str, Any]) -> None:
    """Put the results of the timed region, which ended with step number ``step``, into
    ``fields``."""
    fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
    fields["peak_host_memory_bytes"] = peak_host_memory()
    fields["window_start"] = window.start
    fields["window_seconds"] = window.seconds
    fields["step_seconds"] = window.step_seconds
    fields["last_value"] = window.last_value
    check_value(window.last_value, adapter.case.mode, step)
    train_together = adapter.rank_context.world_size > 1 and adapter.case.mode == "train"
    fields["weights_checksum"] = adapter.weights_checksum() if train_together else None
