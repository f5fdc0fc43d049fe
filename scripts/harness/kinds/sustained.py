"""A matmul repeated for seconds, while the device reports its clock and power.

NVML reports for GPUs, the kernel for CPUs: cpufreq or /proc/cpuinfo, RAPL. A quantity that a device
does not report has no figure. A device that reports nothing is unsupported."""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from harness import nvml
from harness.adapter import Unsupported
from harness.capabilities import SingleOperations
from harness.kind import Context, Metric, Parameter, Workload, above_zero, at_least
from harness.measuring import blocks, rounding
from harness.measuring.operands import check_matmul, matmul_operands
from harness.measuring.sweep import Block, GridPoint, Sweep
from harness.operations import MATMUL, MatmulShape
from harness.sensors import CLOCK, ENERGY, Reading, Sensors


class Sustained(Sweep):
    """Sustained matmul: TFLOP/s over all seconds, MHz and W, on the worst device."""

    needs = SingleOperations
    names_points = False
    parameters = (
        Parameter("seconds", above_zero, "s", "how long matmuls run", 10.0),
        Parameter("size", at_least(1), "", "rows and columns of both matrices", 2048),
        Parameter(
            "block_seconds", above_zero, "s", "matmuls between two readings of the device", 0.5
        ),
    )

    def grid(self, workload: Workload) -> List[GridPoint]:
        size = workload.parameters["size"]
        return [GridPoint({}, MatmulShape(1, size, size, size))]

    def figures(self, workload: Workload, subject: MatmulShape) -> Dict[str, Metric]:
        def rate(block: Block) -> float:
            done = block["operations"] * len(block["seconds"])
            return float(1e-12 * subject.operations * done / sum(block["seconds"]))

        return {"rate": Metric("TFLOP/s", "higher", "min", rate)}

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {
            **super().metrics(workload),
            "clock": Metric("MHz", "higher", "min", clock, optional=True),
            "power": Metric("W", "lower", "max", power, optional=True),
        }

    def run(self, context: Context, subject: MatmulShape) -> Iterator[Block]:
        adapter, fields, parameters = context.adapter, context.fields, context.workload.parameters
        meter = device_meter(context)
        random = blocks.random_of(context)
        first, second = matmul_operands(subject, random)
        product = adapter.primitives().operation(MATMUL, [first, second])
        dtype = rounding.check_ran_in(context, product.dtype)
        readings: List[Dict[str, Any]] = []
        fields["readings"] = readings
        begin: List[float] = []

        def goes_on(done: int) -> bool:
            """Read the device before the first block and after each block."""
            begin.append(time.perf_counter())
            readings.append({"seconds": begin[-1] - begin[0], **meter()})
            return bool(readings[-1]["seconds"] < parameters["seconds"])

        taken = blocks.measure(context, product, goes_on=goes_on)
        error = check_matmul(product.result(), first, second, dtype, random)
        yield {**taken, "error": error}


def device_meter(context: Context) -> Callable[[], Reading]:
    """Return the meter of this rank's device. Raises Unsupported where nothing is reported."""
    index = context.rank_context.local_rank
    if context.rank_context.accelerator == "cpu":
        meter = Sensors(context.cores or sorted(os.sched_getaffinity(0))).clock_and_energy
    else:
        try:
            meter = partial(nvml.find(os.environ, index + 1).clock_and_energy, index)
        except nvml.Unwatchable as error:
            raise Unsupported(f"the GPU reports nothing: {error}") from error
    if set(meter().values()) == {None}:
        raise Unsupported("this machine reports neither clock nor energy of its device")
    return meter


def clock(rank: Mapping[str, Any]) -> Optional[float]:
    """Return the median of all readings after matmuls in MHz; None without readings."""
    clocks = [reading[CLOCK] for reading in rank["readings"][1:] if reading[CLOCK] is not None]
    return statistics.median(clocks) if clocks else None


def power(rank: Mapping[str, Any]) -> Optional[float]:
    """Return the W over all seconds; None where no energy was counted."""
    first, last = rank["readings"][0], rank["readings"][-1]
    if first[ENERGY] is None or last[ENERGY] is None:
        return None
    return float((last[ENERGY] - first[ENERGY]) / last["seconds"])
