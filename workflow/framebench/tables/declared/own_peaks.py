"""Table of the peak that each framework reaches on a device, with the library that it used."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from ...statistics.verdicts import FASTER
from ..columns import TEXT, WHOLE, Column, shared
from ..results import CaseResult
from ..table import Inputs, Table
from .efficiency import OWN_PEAK_SHARE, tflops, tflops_per_device
from .variants import VARIANTS

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table -> attributes of peaks.
_FIELDS = {
    "framework": "framework", "framework_version": "framework_version", "precision": "precision",
    "peak_hardware": "hardware", "busy_devices": "devices", "own_peak_tflops": "tflops",
    "library": "library", "remedy": "remedy",
}  # fmt: skip
#: Share of the best peak below which a framework's library is called slow.
SLOW = 0.5


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return a row per device, precision, number of busy devices and framework, fastest first."""
    import pandas as pd  # slow to import, and plans make no rows

    alike = [*inputs.peaks.alike()]
    fields = attrgetter(*_FIELDS.values())
    listed = [(device, *fields(peak)) for device, some in enumerate(alike) for peak in some]
    peaks = pd.DataFrame(listed, columns=["device", *_FIELDS])
    peaks = peaks.sort_values("own_peak_tflops", ascending=False, kind="stable")
    best = peaks.groupby("device")[["framework", "own_peak_tflops"]].transform("first")
    peaks[["best_framework", "best_tflops"]] = best
    peaks[OWN_PEAK_SHARE.name] = peaks["own_peak_tflops"] / peaks["best_tflops"]
    gains = _gains(inputs)
    peaks["helps"] = [
        "; ".join(filter(None, (gains.get(framework), remedy)))
        for framework, remedy in zip(peaks["framework"], peaks["remedy"], strict=True)
    ]
    return (
        peaks.drop_duplicates(["device", "framework"])
        .sort_values("device", kind="stable")
        .drop(columns=["device", "remedy"])
    )


def _gains(inputs: Inputs) -> dict[Hashable, str]:
    """Return the variants that were shown to be faster, with their ratios, by framework."""
    made = inputs.made(VARIANTS)
    faster = made[made["verdict"] == FASTER].groupby(["framework", "suite_variant"], sort=False)[
        "speedup"
    ]
    ends = faster.agg(["min", "max"]).reset_index()
    texts = [_range(*row) for row in ends[["suite_variant", "min", "max"]].itertuples(index=False)]
    return ends.assign(text=texts).groupby("framework")["text"].agg("; ".join).to_dict()


def _range(variant: str, low: float, high: float) -> str:
    least, most = f"{low:.2f}x", f"{high:.2f}x"
    return f"variant {variant}: {least if least == most else f'{least} to {most}'}"


def sentences(tables: Mapping[Table, pd.DataFrame]) -> list[str]:
    """Return a sentence per framework whose peak on one device is below SLOW of the best."""
    from .. import view  # slow to import, and plans need only names

    said = []
    for row in view.rows_of(tables, OWN_PEAKS):
        if row[OWN_PEAK_SHARE.name] >= SLOW or row["busy_devices"] > 1:
            continue
        own, best = (f"{row[name]:.3g}" for name in ("own_peak_tflops", "best_tflops"))
        text = f"{row['framework']} multiplies slowly here: {own} TFLOP/s {row['precision']}, "
        text += f"{row['best_framework']} {best}"
        text += f"; it uses {row['library']}" if row["library"] else ""
        said.append(text + (f"; helps: {row['helps']}" if row["helps"] else ""))
    return said


def relate_to_peak(inputs: Inputs, result: CaseResult) -> tuple[str, bool]:
    """Return how steps relate to their framework's peak, and whether that is slow; "" if unknown.

    One device of the case is compared with one device."""
    if not result.case.is_step:
        return "", False
    run = result.runs[0]
    own, best = inputs.peaks.for_run(run, run.case.framework), inputs.peaks.for_run(run)
    if not (own and best and own.tflops and best.tflops):
        return "", False
    achieved, share = tflops_per_device(result, inputs.models), own.tflops / best.tflops
    text = f"{achieved / own.tflops:.0%} of its own peak, which is" if achieved else "own peak:"
    return f"{text} {share:.0%} of the best", share < SLOW


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
        tflops("own_peak_tflops", "fastest matmuls of this framework", "own peak TFLOP/s"),
        OWN_PEAK_SHARE,
        Column("best_framework", TEXT, "the fastest framework", hoisted=True),
        tflops("best_tflops", "fastest matmuls of that", "its TFLOP/s"),
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
