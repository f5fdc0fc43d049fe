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
from .efficiency import (
    DOUBTED,
    HIGHEST_MFU,
    UNKNOWN_OPERATIONS,
    operations_per_sample,
    tflops_per_device,
)

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
    flags = {*flags_of(result).split()}
    if reached is not None and compute and memory and attained is not None:
        flags |= {*flags_of(compute.result, memory.result).split()}
        if attained > HIGHEST_MFU * compute.value:
            flags.add(DOUBTED)
        stays = (moved.held or 0) <= (memory.last_cache or -1)
        if limit == MEMORY and (stays or reached > 1):
            flags.add(LOW)
    reason = "" if compute and memory else _no_roof(result, memory)
    if operations is None:
        reason = UNKNOWN_OPERATIONS
    elif moved.moved is None:
        reason = moved.reason
    if result.throughput is None:
        reason = f"{result.status}: {result.reason}"
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
        "flags": " ".join(sorted(flags)),
        "reason": reason,
    }


def _no_roof(result: CaseResult, memory: Roof | None) -> str:
    """Return which roof was not measured, and what measures it."""
    case, where = result.case, result.conditions
    own, count = where.cores_per_device, case.devices_per_node
    devices = formatting.counted(count, "device")
    devices += f" of {formatting.counted(own, 'core')}" if own else ""
    if memory:
        return f"no peak of {devices} in {case.precision}: kind peak_flops or matmul on as many"
    how = _MEASURE.get(where.accelerator, "nothing measures it")
    return f"no bandwidth of the memory of {devices}: {how}, devices_per_node {count}"


ROOFLINE = declared_table("roofline", rows)
TABLES = (ROOFLINE,)
