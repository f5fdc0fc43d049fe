"""Roofline table: each case against the peak and the memory bandwidth of its device.

Model: Williams, Waterman & Patterson, *Communications of the ACM* 52(4), 2009, with measured roofs.
Bytes are a lower bound of the traffic (see ``tables/traffic.py``), so that intensity and bound
are upper bounds."""

from __future__ import annotations

import pandas as pd

from .. import formatting, roofs, traffic
from ..columns import Row
from ..results import CaseResult, flags_of
from ..roofs import Roof
from ..table import Inputs, declared_table
from .efficiency import DOUBTED, HIGHEST_MFU, operations_per_sample, tflops_per_device

COMPUTE, MEMORY = "compute", "memory"
#: Flag for a memory roof that may not be a bound.
LOW = "roof"
#: Benchmark of memory bandwidth by accelerator.
_MEASURE = {
    "cpu": "kind memory",
    "cuda": f"kind elementwise with elements {roofs.MEMORY['cuda'].least}",
}


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per case; none if no memory bandwidth was measured."""
    is_measured = roofs.has_memory(inputs)
    return inputs.cases_with(lambda result: _cells(inputs, result) if is_measured else None)


def _cells(inputs: Inputs, result: CaseResult) -> Row:
    """Return the figures of a case.

    1. intensity: model FLOPs of a step on a device / least bytes that it moves.
    2. bound: lower one of peak and bandwidth x intensity.
    3. reached: FLOP/s of a device / bound."""
    run = (result.ok or result.runs)[0]  # all runs share model, precision and device
    moved = traffic.of_step(run, inputs.models)
    operations = operations_per_sample(run, inputs.models)
    attained = tflops_per_device(result, inputs.models)
    compute, memory = roofs.compute_roof(inputs, run), roofs.memory_roof(inputs, run)
    intensity = None
    if operations is not None and moved.moved:
        samples = run.case.samples_of_replica
        intensity = operations * samples / moved.moved
    bound, limit = None, ""
    if intensity is not None and compute and memory:
        under_memory = intensity * memory.value / 1000
        bound = min(compute.value, under_memory)
        limit = COMPUTE if compute.value <= under_memory else MEMORY
    reached = attained / bound if attained is not None and bound else None
    return {
        "bytes_moved": moved.moved,
        "intensity": intensity,
        "tflops_per_device": attained,
        "compute_roof_tflops": compute and compute.value,
        "compute_roof_by": compute.by if compute else "",
        "memory_roof_gbytes_per_second": memory and memory.value,
        "memory_roof_by": memory.by if memory else "",
        "ridge": 1000 * compute.value / memory.value if compute and memory else None,
        "bound_tflops": bound,
        "lower_roof": limit,
        "reached": reached,
        "flags": _flags(result, attained, reached, limit, moved, compute, memory),
        "reason": _reason(result, operations, moved, compute, memory),
    }


def _flags(
    result: CaseResult,
    attained: float | None,
    reached: float | None,
    limit: str,
    moved: traffic.Traffic,
    compute: Roof | None,
    memory: Roof | None,
) -> str:
    """Return the case's flags and, if there is a bound, those of the figures behind it.

    Further flags mark a peak or a bandwidth that may not be a bound."""
    if reached is None:
        return flags_of(result)
    sides = [roof.result for roof in (compute, memory) if roof]
    flags = {*flags_of(result, *sides).split()}
    if compute and attained and attained > HIGHEST_MFU * compute.value:
        flags.add(DOUBTED)
    cache = memory.last_cache if memory else None
    stays = cache is not None and moved.held is not None and moved.held <= cache
    if limit == MEMORY and (stays or reached > 1):
        flags.add(LOW)
    return " ".join(sorted(flags))


def _reason(
    result: CaseResult,
    operations: float | None,
    moved: traffic.Traffic,
    compute: Roof | None,
    memory: Roof | None,
) -> str:
    """Return why a figure is missing; "" if none is."""
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    if operations is None:
        return "the operations of this model, or of this sequence length, are not known"
    if moved.moved is None:
        return moved.reason
    if compute and memory:
        return ""
    case, where = result.case, result.conditions
    own = where.cores_per_device
    cores = f" of {formatting.counted(own, 'core')}" if own else ""
    count = case.devices_per_node
    devices = formatting.counted(count, "device") + cores
    if memory is None:
        how = _MEASURE.get(where.accelerator, "nothing measures it")
        return f"no bandwidth of the memory of {devices}: {how}, devices_per_node {count}"
    return f"no peak of {devices} in {case.precision}: kind peak_flops or matmul on as many"


ROOFLINE = declared_table("roofline", rows)
TABLES = (ROOFLINE,)
