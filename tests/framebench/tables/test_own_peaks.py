"""Own peaks of frameworks: shares in tables, and the sentence about a slow library."""

from __future__ import annotations

import pytest
from framebench.records.device_peaks import PeakFlopsLookup
from framebench.tables import frames, grouping, origin, view
from framebench.tables.declared.efficiency import EFFICIENCY
from framebench.tables.first_screen import first_screen
from framebench.tables.table import Inputs

from ..made_up_peaks import CPU, ROOFLINE_MODELS, peak_flops
from ..made_up_runs import repeats

PEAKS = (
    peak_flops(0.08),
    peak_flops(0.02, framework="pytorch", library="MKL 1"),
    peak_flops(0.01, framework="pytorch"),
    peak_flops(0.041, framework="mxnet"),
    peak_flops(0.001, framework="pytorch", devices=2),
    peak_flops(0.07, devices=2),
    peak_flops(0.001, framework="mxnet", hardware="Other CPU"),
)


def made(*variants: str) -> Inputs:
    runs = [
        run
        for variant in variants or ("",)
        for run in repeats(
            *(
                value * (2 if variant == "fast" else 1)
                for value in (1.99, 2.0, 2.01, 2.02, 2.03, 2.04, 2.05)
            ),
            suite_variant=variant,
            variables=(("A", "1"),) * (variant == "fast"),
            **CPU,
        )
    ]
    return Inputs(grouping.group(runs, None), peaks=PeakFlopsLookup(PEAKS), models=ROOFLINE_MODELS)


def test_a_figure_has_its_part_of_both_peaks() -> None:
    inputs = made()
    (row,) = view.records(inputs.made(EFFICIENCY))
    assert row["mfu"] == pytest.approx(2.02 * 6e9 / 0.08e12)
    assert row["of_own_peak"] == pytest.approx(2.02 * 6e9 / 0.02e12)
    assert (row["own_peak_tflops"], row["own_peak_library"]) == (0.02, "MKL 1")
    assert row["own_peak_share"] == pytest.approx(0.25)


def test_the_first_screen_names_a_slow_library() -> None:
    inputs = made()
    runs = [run for case in inputs.cases.values() for run in case.runs]
    screen = first_screen(inputs, frames.build(inputs), runs, origin.describe_origin(runs))
    (sentence,) = screen.slow_libraries
    assert sentence.startswith("PyTorch")
    noted = [one.label for setting in screen.settings for one in setting.entrants
             if "slow library" in one.notes]  # fmt: skip
    assert noted == ["PyTorch"]
    assert sentence.endswith("MKL 1")
