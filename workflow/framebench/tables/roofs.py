"""Limits of the devices that a case was measured on: measured peaks, bandwidths, all-reduces, and
peaks from data sheets.

Devices share memory, power and clock. A case is therefore compared with what the same number of
devices, with the same number of cores, reached together on the same machine.

An all-reduce was measured in the same framework, by the benchmark ``collective``. Between two
measured sizes, time is linear in bytes, as for a latency and a bandwidth (Hockney, *Parallel
Computing* 20, 1994). Below the smallest size its time is used. Beyond the largest size there is no
expectation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from core import precisions

from ..cases.conditions import OURS
from ..machine.identities import same
from ..records import device_peaks
from ..records.device_peaks import KIND as PEAK
from ..records.run import Run
from ..statistics import descriptive
from .results import CaseResult
from .table import Inputs


class RoofMetric(NamedTuple):
    """Benchmark and metric of a roof.

    ``parameter``: parameter that must be at least ``least``; "" for none."""

    kind: str
    metric: str
    parameter: str = ""
    least: int = 0


#: Metrics of peak FLOPS, each of the slowest device.
COMPUTE = (RoofMetric(PEAK, "peak"), RoofMetric("matmul", "highest_rate"))
#: Bandwidth of all devices together, by accelerator: STREAM's triad on a CPU; on a GPU the sum of
#: two arrays of at least 2^26 elements, which no cache holds.
MEMORY = {
    "cpu": RoofMetric("memory", "triad"),
    "cuda": RoofMetric("elementwise", "add", "elements", 2**26),
}
_COLLECTIVE, _ALL_REDUCE, _FLOAT32 = "collective", "all_reduce", "float32"
_MICROSECOND = 1e-6


class Roof(NamedTuple):
    """A roof of one device. ``value``: TFLOP/s or GB/s. ``by``: origin of the figure."""

    value: float
    by: str
    result: CaseResult | None = None


def has_memory(inputs: Inputs) -> bool:
    """Return whether any memory bandwidth was measured."""
    return any(
        result.throughput is not None and result.case.nodes == 1 and _is_of(result, roof)
        for result in inputs.others.values()
        if (roof := MEMORY.get(result.conditions.accelerator))
    )


def compute_roof(inputs: Inputs, run: Run) -> Roof | None:
    """Return the highest TFLOP/s of a run's device in its precision, of any framework."""
    roofs = [
        Roof(tflops, _origin(result), result)
        for metric in COMPUTE
        for result, tflops in _measured(inputs, run, metric)
        if result.case.precision == run.case.precision
    ]
    peak = inputs.peaks.for_run(run)
    if peak and peak.tflops and peak.devices == run.case.devices_per_node:
        roofs.insert(0, Roof(peak.tflops, peak.by))
    return max(roofs, key=lambda roof: roof.value, default=None)


def memory_roof(inputs: Inputs, run: Run) -> Roof | None:
    """Return the highest GB/s of a run's device."""
    metric = MEMORY.get(run.conditions.accelerator)
    roofs = (
        Roof(together / result.case.devices, _origin(result), result)
        for result, together in (_measured(inputs, run, metric) if metric else ())
    )
    return max(roofs, key=lambda roof: roof.value, default=None)


def expected_all_reduces(
    inputs: Inputs, run: Run, sizes: Sequence[int]
) -> tuple[float, CaseResult] | None:
    """Return the seconds that all-reduces of ``sizes`` bytes take one after the other (median over
    repeats), and the case that measured them between ranks like those of ``run``.

    If several cases did, the one with the largest size counts. None if a size exceeds it."""
    precision = precisions.known().get(run.case.precision)
    dtype = (precision.storage if precision else "") or _FLOAT32
    asked = (run.case.framework, run.case.framework_version, _ALL_REDUCE, dtype)
    measured: list[tuple[int, CaseResult, list[dict[int, float]]]] = []
    for result in _on_devices_of(inputs, run, _COLLECTIVE, run.case.nodes):
        case, parameters = result.case, dict(result.case.parameters)
        own = (parameters.get("operation"), parameters.get("dtype", _FLOAT32))
        # Each case counts once, with its principal metric.
        if result.key == result.runs[0].key and asked == (
            case.framework, case.framework_version, *own
        ):  # fmt: skip
            times = [some for one in result.ok if (some := _times_of(one))]
            measured.append((min(map(max, times), default=0), result, times))
    if not sizes or not measured:
        return None
    largest, result, times = max(measured, key=lambda one: one[0])
    if max(sizes) > largest:
        return None
    totals = [float(np.interp([*sizes], [*some], [*some.values()]).sum()) for some in times]
    return descriptive.median(totals), result


def _times_of(run: Run) -> dict[int, float]:
    """Return the seconds of all-reduces by their bytes, in rising order."""
    return dict(sorted(
        (int(dict(metric.point)["bytes"]), _MICROSECOND * metric.value)
        for metric in run.metrics
        if metric.name == "time" and metric.value is not None and "bytes" in dict(metric.point)
    ))  # fmt: skip


@lru_cache(maxsize=1)
def _by_devices(inputs: Inputs) -> Mapping[tuple[Any, ...], Sequence[CaseResult]]:
    """Return the results of other benchmarks, by benchmark and devices."""
    found: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
    for result in inputs.others.values():
        if result.ok:
            found[_devices(result.ok[0], result.case.mode, result.case.nodes)].append(result)
    return found


def _on_devices_of(inputs: Inputs, run: Run, kind: str, nodes: int = 1) -> Iterator[CaseResult]:
    """Yield the results of a benchmark on ``nodes`` nodes of the same machine, each with as many
    devices as a node of ``run``."""
    if run.case.source == OURS and run.hardware:
        for result in _by_devices(inputs).get(_devices(run, kind, nodes), ()):
            if same(result.ok[0].machine, run.machine):
                yield result


def _devices(run: Run, kind: str, nodes: int) -> tuple[Any, ...]:
    where = run.conditions
    place = (run.hardware, where.accelerator, where.cores_per_device, run.case.devices_per_node)
    return (kind, nodes, *place)


def _measured(inputs: Inputs, run: Run, metric: RoofMetric) -> Iterator[tuple[CaseResult, float]]:
    """Yield the results of a roof's metric on devices like those of ``run``, and their figures."""
    for result in _on_devices_of(inputs, run, metric.kind):
        if _is_of(result, metric) and result.throughput is not None:
            yield result, result.throughput


def _is_of(result: CaseResult, source: RoofMetric) -> bool:
    value = dict(result.case.parameters).get(source.parameter, 0)
    is_large = not source.parameter or (isinstance(value, int) and value >= source.least)
    return (result.case.mode, result.key.metric) == source[:2] and is_large


def _origin(result: CaseResult) -> str:
    """Return a roof's origin: framework and version, benchmark, metric and number of devices."""
    case = result.case
    whose = f"{case.framework} {case.framework_version} " if case.framework else ""
    together = f" on {case.devices} devices at once" if case.devices > 1 else ""
    return f"{whose}{case.mode} {result.key.metric}{together}"


# ---- data sheets ---------------------------------------------------------------------------------


def datasheet_tflops(run: Run) -> float | None:
    """Return the data-sheet TFLOP/s of a run's device.

    None for CPUs, for instances of MIG, and unless exactly one value matches the machine's GPUs."""
    if run.conditions.accelerator == "cpu":
        return None
    stated = {
        device_peaks.gpu_tflops(re.split(r" at | \(ECC ", name)[0], run.case.precision)
        for name in run.hardware.split(", ")
        if " MIG " not in name
    } - {None}
    return stated.pop() if len(stated) == 1 else None
