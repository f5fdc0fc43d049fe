"""Table of efficiency: FLOPS against the peak, energy, memory.

Model FLOPs are two per multiply-add of the forward pass. A training step has three times that: the
backward pass has two matmuls for each of the forward pass. Recomputation and operations other than
matmul do not count (model FLOPs utilization: PaLM, Chowdhery et al. 2022, appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...config.catalog import forward_multiply_adds
from ...records.device_peaks import PeakFlops
from ...records.run import Run
from ..columns import Row
from ..results import CaseResult, over_runs
from ..roofs import datasheet_tflops
from ..table import Inputs, declared_table

#: Highest plausible MFU, because a model does not consist of large matmuls only. A higher MFU means
#: that the peak was measured too low.
HIGHEST_MFU = 0.95
DOUBTED = "peak"
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


def tflops_per_device(result: CaseResult, operations: float | None) -> float | None:
    """Return the TFLOP/s per device with so many operations of a sample; None without either."""
    if result.throughput is None or operations is None:
        return None
    return result.throughput * operations / result.case.devices / 1e12


def _cells(result: CaseResult, inputs: Inputs) -> Row:
    """Return the figures of a case.

    1. tflops_per_device: median throughput x model FLOPs of a sample / devices.
    2. mfu: tflops_per_device / highest peak of any framework's matmul on such a device;
       of_own_peak: the same for this framework's matmul.
    3. Energy: median over repeats of joules / samples, of all devices.
    4. Memory: highest peak of any rank and repeat."""
    run = (result.ok or result.runs)[0]  # all share model, precision and device
    operations = operations_per_sample(run, inputs.models)
    achieved = tflops_per_device(result, operations)
    peak = inputs.peaks.for_run(run)
    own = inputs.peaks.for_run(run, run.case.framework)
    mfu = _part(achieved, peak)
    sources = {r.energy_sources for r in result.ok if r.joules_per_sample is not None}
    return {
        "tflops_per_device": achieved,
        "peak_tflops": peak and peak.tflops,
        "peak_by": peak.by if peak else "",
        "of_own_peak": _part(achieved, own),
        "own_peak_tflops": own and own.tflops,
        "own_peak_share": _part(own.tflops if own else None, peak),
        "datasheet_tflops": datasheet_tflops(run),
        "mfu": mfu,
        "energy_joules_per_sample": over_runs(lambda run: run.joules_per_sample)(result),
        "energy_sources": " or ".join(sorted(sources)),
        # The figure exceeds or nearly reaches the peak.
        "flags": " ".join(sorted({*result.flags, *[DOUBTED] * ((mfu or 0) > HIGHEST_MFU)})),
        "reason": _reason(result, operations, peak),
    }


def _part(tflops: float | None, peak: PeakFlops | None) -> float | None:
    return tflops / peak.tflops if tflops is not None and peak and peak.tflops else None


def _reason(result: CaseResult, operations: float | None, peak: PeakFlops | None) -> str:
    """Return why there is no MFU; "" if there is one."""
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    if operations is None:
        return UNKNOWN_OPERATIONS
    return "" if peak else f"no peak-FLOPS benchmark of such a device in {result.case.precision}"


EFFICIENCY = declared_table(
    "efficiency", lambda inputs: inputs.cases_with(lambda result: _cells(result, inputs))
)
TABLES = (EFFICIENCY,)
