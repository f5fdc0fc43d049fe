"""Tables of efficiency (FLOPS against the peak, energy, memory) and of rooflines (FLOPS against the
peak and the memory bandwidth of the device).

Model FLOPs are two per multiply-add of the forward pass. A training step has three times that: the
backward pass has two matmuls for each of the forward pass. Recomputation and operations other than
matmul do not count (model FLOPs utilization: PaLM, Chowdhery et al. 2022, appendix B).

Rooflines: Williams, Waterman & Patterson, "Roofline", *Communications of the ACM* 52(4), 2009, with
measured roofs. Bytes are compulsory traffic, a lower bound, so that intensity and bound are upper
bounds. Symbols: N parameters of s bytes; k optimizer values per parameter; gradients of c bytes; n
parameters outside lookup tables.

1. Training reads and writes each parameter and optimizer value once, and writes and reads each
   gradient once: 2 (s (1 + k) N + c n) bytes.
2. A forward pass reads its parameters once, in the smallest dtype that the precision has for
   matmuls: c n bytes.

Activations, inputs and other traffic do not count, because no model config tells how much of it
leaves the caches. Real traffic is higher, unless a cache keeps data from one step to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from core import precisions
from core.parallelism import DATA

from ...config.catalog import forward_multiply_adds
from ...records.device_peaks import PeakFlops
from ...records.run import Run
from .. import roofs
from ..columns import Row
from ..results import CaseResult, flags_of, over_runs
from ..table import Inputs, declared_table

#: Highest plausible MFU, because a model does not consist of large matmuls only. A higher MFU means
#: that the peak was measured too low.
HIGHEST_MFU = 0.95
DOUBTED = "peak"
#: Roofs, and the flag for a memory roof that is too low to be a bound.
COMPUTE, MEMORY, LOW = "compute", "memory", "roof"
#: Values per parameter that an optimizer keeps.
STATE = {"sgd": 1, "adamw": 2, "lamb": 2}
#: Reason of a missing figure.
UNKNOWN_OPERATIONS = "the operations of this model, or of this sequence length, are not known"


def operations_per_sample(run: Run, models: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return the model FLOPs of one sample in the run's mode.

    None if the model or its sequence length is unknown. ``models``: model config by name. The
    operations of a user's own model are those that the run counted."""
    passes = 3 if run.case.mode == "train" else 1
    if work := run.sample_work:
        return None if work.multiply_adds is None else 2.0 * passes * work.multiply_adds
    model_config = models.get(run.case.model)
    if model_config is None:
        return None
    length = run.case.sequence_length
    if model_config["sequence_lengths"] and length is None:
        return None
    return (
        2.0 * passes * forward_multiply_adds(dict(model_config), length, run.case.mode == "train")
    )


def _tflops_per_device(result: CaseResult, operations: float | None) -> float | None:
    """Return the TFLOP/s per device, given the operations per sample; None if one is missing."""
    if result.throughput is None or operations is None:
        return None
    return result.throughput * operations / result.case.devices / 1e12


def _efficiency(inputs: Inputs, result: CaseResult) -> Row:
    """Return the figures of a case.

    1. tflops_per_device: median throughput x model FLOPs of a sample / devices.
    2. mfu: tflops_per_device / highest peak of any framework's matmul on such a device;
       of_own_peak: the same for this framework's matmul.
    3. Energy: median over repeats of joules / samples, of all devices.
    4. Memory: highest peak of any rank and repeat."""
    run = (result.ok or result.runs)[0]  # all share model, precision and device
    operations = operations_per_sample(run, inputs.models)
    achieved = _tflops_per_device(result, operations)
    peak = inputs.peaks.for_run(run)
    own = inputs.peaks.for_run(run, run.case.framework)
    mfu = _part(achieved, peak)
    reason = "" if peak else f"no peak-FLOPS benchmark of such a device in {run.case.precision}"
    if result.throughput is None:
        reason = f"{result.status}: {result.reason}"
    elif operations is None:
        reason = UNKNOWN_OPERATIONS
    sources = {r.energy_sources for r in result.ok if r.joules_per_sample is not None}
    return {
        "tflops_per_device": achieved,
        "peak_tflops": peak and peak.tflops,
        "peak_by": peak.by if peak else "",
        "of_own_peak": _part(achieved, own),
        "own_peak_tflops": own and own.tflops,
        "own_peak_share": _part(own.tflops if own else None, peak),
        "datasheet_tflops": roofs.datasheet_tflops(run),
        "mfu": mfu,
        "energy_joules_per_sample": over_runs(lambda run: run.joules_per_sample)(result),
        "energy_sources": " or ".join(sorted(sources)),
        # The figure exceeds or nearly reaches the peak.
        "flags": " ".join(sorted({*result.flags, *[DOUBTED] * ((mfu or 0) > HIGHEST_MFU)})),
        "reason": reason,
    }


def _part(tflops: float | None, peak: PeakFlops | None) -> float | None:
    return tflops / peak.tflops if tflops is not None and peak and peak.tflops else None


# ---- rooflines -----------------------------------------------------------------------------------


def _rooflines(inputs: Inputs) -> pd.DataFrame:
    """Return a row per case; none if no memory bandwidth was measured."""
    is_measured = roofs.has_memory(inputs)
    return inputs.cases_with(lambda result: _roofline(inputs, result) if is_measured else None)


def _roofline(inputs: Inputs, result: CaseResult) -> Row:
    """Return the figures of a case.

    1. intensity: model FLOPs of a step on a device / least bytes that it moves.
    2. bound: lower one of peak and bandwidth x intensity.
    3. reached: FLOP/s of a device / bound."""
    run = (result.ok or result.runs)[0]  # all runs share model, precision and device
    moved, unknown = traffic_of_step(run, inputs.models)
    operations = operations_per_sample(run, inputs.models)
    attained = _tflops_per_device(result, operations)
    compute, memory = roofs.compute_roof(inputs, run), roofs.memory_roof(inputs, run)
    intensity = None
    if operations is not None and moved:
        intensity = operations * run.case.samples_of_replica / moved
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
        if limit == MEMORY and reached > 1:
            flags.add(LOW)
    reason = unknown
    if result.throughput is None:
        reason = f"{result.status}: {result.reason}"
    elif operations is None:
        reason = UNKNOWN_OPERATIONS
    elif not (compute and memory) and not reason:
        lacking = f"peak in {run.case.precision}" if memory else "memory bandwidth"
        reason = f"no {lacking} was measured on as many such devices (docs/micro-benchmarks.md)"
    return {
        "bytes_moved": moved,
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


class Traffic(NamedTuple):
    """Bytes that a step moves to and from each device's memory; None, with a reason, if unknown."""

    moved: float | None
    reason: str = ""


def traffic_of_step(run: Run, models: Mapping[str, Mapping[str, Any]]) -> Traffic:
    """Return the least traffic of a run's step. ``models``: model config by name.

    A training of a user's own model reads and writes each parameter; the optimizer's values and
    gradients, which are unknown, are not included."""
    case, work = run.case, run.sample_work
    stored, computed = _bytes_of(case.precision)
    if stored is None or computed is None:
        return Traffic(None, f"the dtype of parameters in {case.precision} is unknown")
    if work:
        if case.mode == "train":
            return Traffic(2.0 * stored * work.parameters)
        if not work.read_parameters:
            return Traffic(None, "the model has no parameters")
        return Traffic(float(computed * work.read_parameters))
    model_config = models.get(case.model)
    if model_config is None or "trainable_parameters" not in model_config:
        return Traffic(None, "the parameters of this model are not known")
    if case.parallelism != DATA:
        return Traffic(None, f"with {case.parallelism} devices share the parameters")
    hyper = model_config["hyperparameters"]
    count = int(model_config["trainable_parameters"])
    # Lookup tables do not count, because a step reads few of their rows. If logits use the token
    # table, all of it is read, so the least traffic is underestimated.
    rows = hyper.get("vocabulary", 0) + hyper.get("positions", 0)
    outside = count - int(rows * hyper.get("hidden", 0))
    if case.mode != "train":
        if "per_sample_in_training" in model_config["forward_multiply_adds"]:
            return Traffic(None, "the number of parameters that only training reads is unknown")
        return Traffic(float(computed * outside))
    kept = STATE.get(str(hyper.get("optimizer")))
    if kept is None:
        return Traffic(None, "the values that the optimizer keeps per parameter are unknown")
    if hyper["optimizer"] == "sgd" and not hyper.get("momentum"):
        kept = 0
    return Traffic(2.0 * (stored * (1 + kept) * count + computed * outside))


def _bytes_of(name: str) -> tuple[int | None, int | None]:
    """Return bytes of a stored parameter, and of the smallest dtype that matmuls read."""
    precision = precisions.known().get(name)
    if precision is None:
        return None, None
    stored = precisions.BYTES.get(precision.storage)
    sizes = [precisions.BYTES.get(dtype) for dtype in precision.dtypes]
    present = [size for size in (*sizes, stored) if size is not None]
    return stored, min(present) if len(present) == len(sizes) + 1 else None


EFFICIENCY = declared_table(
    "efficiency", lambda inputs: inputs.cases_with(lambda result: _efficiency(inputs, result))
)
ROOFLINE = declared_table("roofline", _rooflines)
TABLES = (EFFICIENCY, ROOFLINE)
