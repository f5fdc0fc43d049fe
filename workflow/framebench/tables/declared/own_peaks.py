"""Table of the peak that each framework reaches on a device, with the library that it used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...statistics.verdicts import FASTER
from ..columns import TEXT, WHOLE, Column, Row, shared
from ..results import CaseResult
from ..table import Inputs, Table
from .efficiency import OWN_PEAK_SHARE, tflops, tflops_per_device
from .variants import VARIANTS

if TYPE_CHECKING:
    import pandas as pd

#: Share of the best peak below which a framework's library is called slow.
SLOW = 0.5


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per device, precision, number of busy devices and framework, fastest first."""
    for peaks in inputs.peaks.alike():
        ranked = sorted(peaks, key=lambda peak: -(peak.tflops or 0.0))
        best = ranked[0]
        own = {peak.framework: peak for peak in reversed(ranked)}
        for peak in sorted(own.values(), key=lambda peak: -(peak.tflops or 0.0)):
            yield {
                "framework": peak.framework,
                "framework_version": peak.framework_version,
                "precision": peak.precision,
                "peak_hardware": peak.hardware,
                "busy_devices": peak.devices,
                "own_peak_tflops": peak.tflops,
                OWN_PEAK_SHARE.name: (peak.tflops or 0.0) / (best.tflops or 1.0),
                "best_framework": best.framework,
                "best_tflops": best.tflops,
                "library": peak.library,
                "helps": "; ".join([*_gains(inputs, peak.framework), *filter(None, [peak.remedy])]),
            }


def _gains(inputs: Inputs, framework: str) -> Iterator[str]:
    """Yield the variants that were shown to be faster in this framework, with their ratios."""
    made = inputs.made(VARIANTS)
    faster = made[(made["framework"] == framework) & (made["verdict"] == FASTER)]
    for variant, ratios in faster.groupby("arm", sort=False)["speedup"]:
        least, most = f"{ratios.min():.2f}x", f"{ratios.max():.2f}x"
        yield f"variant {variant}: {least if least == most else f'{least} to {most}'}"


def sentences(tables: Mapping[Table, pd.DataFrame]) -> list[str]:
    """Return a sentence per framework whose peak on one device is below SLOW of the best."""
    from .. import view  # slow to import, and plans need only names

    found: Sequence[Row] = view.records(tables[OWN_PEAKS]) if OWN_PEAKS in tables else []
    said = []
    for row in found:
        if row[OWN_PEAK_SHARE.name] >= SLOW or row["busy_devices"] > 1:
            continue
        own, best = (f"{row[name]:.3g}" for name in ("own_peak_tflops", "best_tflops"))
        words = f"{row['framework']} multiplies slowly here: {own} TFLOP/s {row['precision']}, "
        words += f"{row['best_framework']} {best}"
        words += f"; it uses {row['library']}" if row["library"] else ""
        said.append(words + (f"; helps: {row['helps']}" if row["helps"] else ""))
    return said


def beside(inputs: Inputs, result: CaseResult) -> tuple[str, bool]:
    """Return how steps relate to their framework's peak, and whether that is slow; "" if unknown.

    One device of the case is compared with one device."""
    if not result.case.is_step:
        return "", False
    run = result.runs[0]
    own, best = inputs.peaks.of(run, run.case.framework), inputs.peaks.of(run)
    if not (own and best and own.tflops and best.tflops):
        return "", False
    achieved, share = tflops_per_device(result, inputs.models), own.tflops / best.tflops
    words = f"{achieved / own.tflops:.0%} of its own peak, which is" if achieved else "own peak:"
    return f"{words} {share:.0%} of the best", share < SLOW


OWN_PEAKS = Table(
    name="own_peaks",
    title="Own peaks",
    explanation="How fast each framework multiplies large matrices on this device, and its part of "
    "the fastest. A low part is a slow library, or one that does not know this processor: no model "
    "can be fast with it. The library and the code that it chose are named as it says itself; on "
    "GPUs its version, and whether the build has machine code for them.",
    columns=(
        *shared("framework", "framework_version", "precision"),
        Column("peak_hardware", TEXT, "the device", title="hardware", hoisted=True),
        Column("busy_devices", WHOLE, "devices of a node that multiplied at once", hoisted=True),
        tflops("own_peak_tflops", "fastest products of this framework", "own peak TFLOP/s"),
        OWN_PEAK_SHARE,
        Column("best_framework", TEXT, "the fastest framework", hoisted=True),
        tflops("best_tflops", "fastest products of that", "its TFLOP/s"),
        Column(
            "library", TEXT, "library and code path, or kernels of the build for a GPU", note=True
        ),
        Column("helps", TEXT, "variants shown to be faster, or builds for this GPU", note=True),
    ),
    rows=rows,
    group="Where the time goes",
    keys=("framework", "framework_version", "precision", "peak_hardware", "busy_devices"),
    answers=(OWN_PEAK_SHARE.name, "own_peak_tflops"),
    axes=("framework", "precision"),
)
TABLES = (OWN_PEAKS,)
