"""Build a model, warm up, and time its steps: first running ahead, then one by one; choose the
number of steps of each phase."""

from __future__ import annotations

import math
import resource
import time
from statistics import median
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from harness.adapter import Adapter, MatmulTrace
from harness.hardware import file_entry
from harness.kind import Context, Kind, Metric, Workload
from harness.measuring import input_pipeline, model
from harness.measuring.checks import check_cores, check_value, compiler_evidence
from harness.measuring.window import Window, measure, run_ahead

#: Least number of warm-up steps that show whether the step time has settled.
FEWEST = 10
#: Largest difference, relative to the step time, at which the step time counts as settled.
TOLERANCE = 0.02
#: Least seconds of a warm-up to settle on a GPU, whose clocks change within seconds under load.
GPU_SECONDS = 3.0
#: Most steps that are added to fill the seconds of a timed region.
MOST_TIMED = 10000
#: Largest share of a run, from the import of the framework to the last step, that steps timed one
#: by one may take.
SHARE = 0.15
#: Maximum number of reasons of recompilations in a record.
MOST_NAMED = 20


def samples(workload: Workload, rank: Mapping[str, Any]) -> int:
    """Return the number of samples that all ranks together compute in the timed region. ``rank``: a
    rank's fields in the record. Text generation has no ``step_seconds``."""
    timed = len(rank["step_seconds"]) if "step_seconds" in rank else workload.timed_steps
    return workload.case.samples_per_step * timed


def peak_host_memory() -> int:
    """Return the peak resident memory of this process in bytes."""
    peak = file_entry("/proc/self/status", "VmHWM")
    if peak:
        return int(peak.split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def is_settled(seconds: Sequence[float]) -> bool:
    """Return whether the last quarter of the steps takes as long as the quarter before.

    Each quarter has at least five steps. Their medians may differ by TOLERANCE, or by noise: the
    standard error of a difference of medians, from the median absolute deviation (0.67 standard
    deviations of normal noise; a median's standard error is 1.25 s / sqrt(n)). Medians ignore
    single stalls and late compilations; quarters show slow changes. A slow drift within the noise
    passes, but the timed region is judged by itself, with more steps."""
    if len(seconds) < FEWEST:
        return False
    count = max(FEWEST // 2, len(seconds) // 4)
    last, before = seconds[-count:], seconds[-2 * count : -count]
    middles = median(last), median(before)
    apart = [abs(s - m) for part, m in zip((last, before), middles) for s in part]
    noise: float = 1.25 * (median(apart) / 0.6745) * (2 / count) ** 0.5
    return abs(middles[0] - middles[1]) <= max(TOLERANCE * middles[0], noise)


def settled_after(seconds: List[float]) -> Optional[int]:
    """Return the number of steps after which the step time had first settled, or None."""
    counts = range(FEWEST, len(seconds) + 1)
    return next((count for count in counts if is_settled(seconds[:count])), None)


def all_settled(adapter: Adapter, seconds: List[float], is_last: bool) -> bool:
    """Return whether the step time has settled in all ranks, which must stop warming up together.
    Unless the step ``is_last``, a GPU must have computed for GPU_SECONDS, too."""
    is_cold = False
    if adapter.rank_context.accelerator == "cuda" and not is_last:
        # compilation within a step does not load the GPU
        is_cold = median(seconds) * len(seconds) < GPU_SECONDS
    settled = is_settled(seconds) and not is_cold
    return adapter.all_reduce(float(settled)) == adapter.rank_context.world_size


def timed_steps(
    adapter: Adapter, fewest: int, seconds: Optional[int], warmup: Sequence[float]
) -> int:
    """Return the steps of the timed region, the same in all ranks that work together.

    ``fewest``: least number of steps; the result where ``seconds`` is None. ``warmup``: seconds of
    the warm-up steps; the last half of them shows how long a step takes."""
    if seconds is None:
        return fewest
    own = median(warmup[len(warmup) // 2 :])
    typical = adapter.all_reduce(own) / adapter.rank_context.world_size
    return max(fewest, min(MOST_TIMED, math.ceil(seconds / max(typical, 1e-6))))


def synchronous_steps(adapter: Adapter, steps: int, seconds: float, elapsed: float) -> int:
    """Return how many steps are timed one by one after a timed region of ``steps`` in ``seconds``,
    which ended ``elapsed`` seconds after the run began.

    Step time and its percentiles need steps that have the device to themselves. In the timed region
    the next step is already enqueued, wherever a step returns before it completes. Repeating all
    steps would make a run half as long again, so SHARE limits their number. A percentile that needs
    many steps (64 for p90, 662 for p99) therefore needs a longer timed region. All ranks get the
    same number, because they all-reduce gradients in each step."""
    step_seconds, most = seconds / steps, SHARE / (1 - SHARE) * elapsed
    count = max(1, min(steps, int(most / step_seconds))) if step_seconds else steps
    return max(1, int(adapter.all_reduce(float(count)) / adapter.rank_context.world_size))


def warm_up(context: Context, step: Callable[[], Any]) -> float:
    """Run the warm-up steps one at a time, then more until the step time settles, if the workload
    sets a limit. Return the seconds that reading the first value took.

    The report gets the seconds of the steps, the first value, and the number of steps until the
    step time had settled (None if it did not)."""
    adapter, workload, fields = context.adapter, context.workload, context.fields
    steps, limit = workload.warmup_steps, workload.warmup_limit
    seconds: List[float] = []
    read_seconds = 0.0
    fields["warmup_step_seconds"] = seconds
    fields["settled_after"] = None
    for number in range(1, (limit or steps) + 1):
        adapter.synchronize()
        start = time.perf_counter()
        handle = step()
        adapter.synchronize()
        seconds.append(time.perf_counter() - start)
        if number == 1:
            start = time.perf_counter()
            fields["first_value"] = adapter.read(handle)
            read_seconds = time.perf_counter() - start
            check_value(fields["first_value"], workload.case.mode, number)
        if limit and number >= steps and all_settled(adapter, seconds, number == limit):
            fields["settled_after"] = number
            break
    if not limit:
        fields["settled_after"] = settled_after(seconds)
    return read_seconds


def run(context: Context) -> None:
    """Run all phases of a run that times steps, in the order of the adapter's contract.

    Raises what the adapter raises, and Mismatch where the executed work is not the requested
    work."""
    adapter, workload, fields = context.adapter, context.workload, context.fields
    feed = input_pipeline.pipeline_steps(context)
    model.build(context, feed.first if feed else model.batch_of_rank(context))
    step = feed.step if feed else adapter.step
    read_seconds = context.phase("warm-up", lambda: warm_up(context, step), "warmup")
    fields["compiled"] = compiler_evidence(adapter)
    fields["cores"] = check_cores(context.cores)
    context.report.enter("timed window")
    ahead, warmup = run_ahead(adapter), fields["warmup_step_seconds"]
    fields["run_ahead"] = ahead
    timed = timed_steps(adapter, workload.timed_steps, workload.timed_seconds, warmup)
    known = len(recompilations(adapter))
    window = measure(adapter, timed, ahead, read_seconds, context.barrier, step)
    note_recompilations(adapter, known, fields)
    fields["phases"]["window_seconds"] = window.seconds
    note_window(adapter, window, len(warmup) + timed, fields)

    def waited_steps() -> int:
        return synchronous_steps(adapter, timed, window.seconds, sum(fields["phases"].values()))

    if feed:
        input_pipeline.time_separately(context, feed, waited_steps(), read_seconds)
    if ahead:
        context.report.enter("synchronous steps")
        waited = measure(adapter, waited_steps(), 0, read_seconds, context.barrier, step)
        fields["waited_step_seconds"] = waited.step_seconds
        fields["phases"]["waited_window_seconds"] = waited.seconds
    context.report.enter("end")


class StepBenchmark(Kind):
    """Benchmark that times steps: global samples per second."""

    needs = MatmulTrace
    counts_steps = True

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        """Return the throughput. The slowest rank's time counts, because samples are done when the
        last rank is."""

        def rate(rank: Mapping[str, Any]) -> float:
            return float(samples(workload, rank) / rank["window_seconds"])

        return {"throughput": Metric(workload.model_config["unit"], "higher", "min", rate)}

    def measure(self, context: Context) -> None:
        run(context)


def recompilations(adapter: Adapter) -> Sequence[str]:
    """Return the reasons for the compiler's recompilations since the process started."""
    return () if adapter.case.compiler == "none" else adapter.recompilations()


def note_recompilations(adapter: Adapter, known: int, fields: Dict[str, Any]) -> None:
    """Put the recompilations within the timed region, if any, into ``fields``, and update the
    evidence of compilation: after too many, a compiler leaves the rest to eager mode. ``known``:
    number of recompilations before the region."""
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
