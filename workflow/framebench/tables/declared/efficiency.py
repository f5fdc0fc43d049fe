"""What a case makes of its device: operations per second against a peak, energy, memory.

Model FLOPs: the multiply-adds of the model's forward pass, two operations each, three times that
for a training step, whose backward pass has two products for each of the forward pass. What a
framework computes again, or besides products, does not count (PaLM, Chowdhery et al. 2022,
appendix B: model FLOPs utilization).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...config.catalog import forward_multiply_adds
from ...records.device_peaks import PeakFlopsLookup
from ...records.run import Run
from ...statistics import descriptive
from ..columns import (
    NUMBER,
    PERCENT,
    RESULT_COLUMNS,
    TEXT,
    THREE_DIGITS,
    Column,
    Row,
    shared,
)
from ..datasheets import Datasheet, datasheet_tflops
from ..results import CaseResult
from ..table import Inputs, Table

#: A model has more than products of large matrices: one that comes closer to their peak than this
#: was measured against a peak that is too low.
HIGHEST_MFU = 0.95
DOUBTED = "peak"


def operations_per_sample(run: Run, models: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Model FLOPs of one sample in the run's mode; None where the model is not known, or how long
    its sequences were. ``models``: facts by name."""
    facts = models.get(run.case.model)
    if facts is None:
        return None
    length = run.conditions.sequence_length
    if facts["sequence_lengths"] and length is None:
        return None
    passes = 3 if run.case.mode == "train" else 1
    return 2.0 * passes * forward_multiply_adds(dict(facts), length, run.case.mode == "train")


def tflops_per_device(result: CaseResult, models: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Operations of the model that each device computes in a second, 10^12 of them; None without a
    throughput, and where :func:`operations_per_sample` is."""
    operations = operations_per_sample(result.runs[0], models)
    if result.throughput is None or operations is None:
        return None
    return result.throughput * operations / result.case.devices / 1e12


def rows(inputs: Inputs) -> Iterator[Row]:
    """A row for every case.

    1. tflops_per_device: median throughput x model FLOPs of a sample / devices.
    2. mfu: that / the highest peak that any framework reached in products on such a device.
    3. Energy: the median over repeats of joules / samples, over all devices; memory: the most that
       any rank of any repeat took.
    """
    for result in inputs.cases.values():
        yield _row(result, inputs.peaks, inputs.models, inputs.datasheets)


def _row(
    result: CaseResult,
    peaks: PeakFlopsLookup,
    models: Mapping[str, Mapping[str, Any]],
    datasheets: Sequence[Datasheet],
) -> Row:
    run = result.runs[0]  # all are of one model, precision and kind of device
    achieved = tflops_per_device(result, models)
    peak = peaks.of(run)
    mfu = achieved / peak.tflops if achieved is not None and peak and peak.tflops else None
    energies = [r.joules_per_sample for r in result.ok if r.joules_per_sample is not None]
    sources = {r.energy_sources for r in result.ok if r.joules_per_sample is not None}
    known = operations_per_sample(run, models) is not None
    return {
        **result.row,
        "throughput_median": result.throughput,
        "unit": result.unit,
        ACHIEVED.name: achieved,
        "peak_tflops": peak and peak.tflops,
        "peak_by": peak.by if peak else "",
        "datasheet_tflops": datasheet_tflops(datasheets, run),
        "mfu": mfu,
        "energy_joules_per_sample": descriptive.median(energies) if energies else None,
        "energy_sources": " or ".join(sorted(sources)),
        "peak_device_memory_bytes": result.peak_device_memory,
        "peak_host_memory_bytes": result.peak_host_memory,
        "marks": _marks(result, mfu),
        "reason": _reason(result, known, peak is not None),
    }


def _marks(result: CaseResult, mfu: float | None) -> str:
    """Those of the case, and one for a peak that it comes too close to."""
    doubted = {DOUBTED} if mfu is not None and mfu > HIGHEST_MFU else set()
    return " ".join(sorted({*result.marks, *doubted}))


def _reason(result: CaseResult, operations_known: bool, peak_known: bool) -> str:
    """Why there is no utilisation; empty where there is one."""
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    if not operations_known:
        return "the operations of this model, or of this sequence length, are not known"
    if not peak_known:
        return f"no peak-FLOPS benchmark of such a device in {result.case.precision}"
    return ""


def tflops(name: str, meaning: str, title: str, **shown: Any) -> Column:
    """A column of 10^12 operations a second."""
    return Column(name, NUMBER, meaning, "TFLOP/s", title=title, form=THREE_DIGITS, **shown)


ACHIEVED = tflops(
    "tflops_per_device",
    "operations of the model on each device",
    "TFLOP/s per device",
    figure=True,
)

EFFICIENCY = Table(
    name="efficiency",
    title="Efficiency",
    explanation="TFLOP/s of one device: throughput times the operations of the model, which are "
    "two for each multiply-add of its forward pass, three times that in training, and nothing for "
    "what is computed again. MFU is its part of the peak, measured on this device: the fastest "
    "products of two matrices in this precision that any framework sustained for seconds, on one "
    "device with idle neighbours. The vendor's value "
    "stands beside it where there is one. Energy is of what could be read, which "
    "the row says: figures of other sources do not compare. Memory is the most that any rank took.",
    columns=(
        *RESULT_COLUMNS,
        *shared("throughput_median", "unit"),
        ACHIEVED,
        tflops("peak_tflops", "fastest products that any framework reached", "peak TFLOP/s"),
        Column(
            "peak_by",
            TEXT,
            "framework, version, dtype and size of these products, and for how long they went on; "
            "those of older records, without it, for 0.1 s",
            title="peak reached by",
            hoisted=True,
            follows="precision",
        ),
        tflops("datasheet_tflops", "what the vendor states", "datasheet TFLOP/s", optional=True),
        Column(
            "mfu",
            NUMBER,
            "model FLOPs utilization: operations over the peak",
            title="MFU %",
            form=PERCENT,
            marked=True,
        ),
        Column(
            "energy_joules_per_sample",
            NUMBER,
            "energy of all sources that could be read, over all samples",
            "J",
            title="J per sample",
            form=THREE_DIGITS,
            optional=True,
            figure=True,
        ),
        Column(
            "energy_sources",
            TEXT,
            "what was read: processors (`package`), memory (`dram`), `gpu`; a package counts idle "
            "cores too",
            title="energy of",
            hoisted=True,
        ),
        *shared("peak_device_memory_bytes", "peak_host_memory_bytes", "marks", "reason"),
    ),
    rows=rows,
    group="Where the time goes",
    always=True,
    sectioned=True,
    answers=("mfu", "tflops_per_device", "throughput_median"),
    order="mfu",
)  # fmt: skip
TABLES = (EFFICIENCY,)
