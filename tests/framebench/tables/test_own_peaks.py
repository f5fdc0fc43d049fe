"""Own peaks of frameworks: shares in tables, and the sentence about a slow library."""

from __future__ import annotations

from dataclasses import replace

import pytest
from framebench.records.device_peaks import PeakFlopsLookup
from framebench.tables import answers, frames, grouping, view
from framebench.tables.declared.efficiency import EFFICIENCY
from framebench.tables.declared.own_peaks import OWN_PEAKS, relate_to_peak
from framebench.tables.table import Inputs

from ..made_up_peaks import CPU, ROOFLINE_MODELS, peak_flops
from ..made_up_runs import repeats

PEAKS = (
    peak_flops(0.08),
    peak_flops(0.02, framework="pytorch", library="MKL 1"),
    peak_flops(0.01, framework="pytorch", framework_version="0"),
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


def test_each_framework_has_its_own_peak_and_its_part_of_the_best_on_such_a_device() -> None:
    rows = view.records(made().made(OWN_PEAKS))
    shares = {
        (row["framework"], row["busy_devices"]): row["own_peak_share"] for row in rows[:5]
    }  # fmt: skip
    assert shares == {
        ("jax", 1): 1,
        ("mxnet", 1): pytest.approx(0.5125),
        ("pytorch", 1): pytest.approx(0.25),
        ("jax", 2): 1,
        ("pytorch", 2): pytest.approx(1 / 70),
    }
    assert [row["own_peak_share"] for row in rows[5:]] == [1], "another device"


def test_a_figure_has_its_part_of_both_peaks() -> None:
    inputs = made()
    (row,) = view.records(inputs.made(EFFICIENCY))
    assert row["mfu"] == pytest.approx(2.02 * 6e9 / 0.08e12)
    assert row["of_own_peak"] == pytest.approx(2.02 * 6e9 / 0.02e12)
    assert row["own_peak_share"] == pytest.approx(0.25)
    (result,) = inputs.cases.values()
    words, slow = relate_to_peak(inputs, result)
    assert slow
    assert "61%" in words
    assert "25%" in words


def test_answers_stay_short_with_much_to_say() -> None:
    actual = answers.answers_of(frames.build(made("default", "fast")))
    much = replace(
        actual,
        fastest=[*actual.fastest] * 9,
        variants=[*actual.variants] * 9,
        slow=["slow"] * 5,
        first_gains=["gain"] * 5,
        failures=[("failed", "1")],
        coverage=["covered"] * 5,
        everywhere=["noisy"],
    )
    for one in (much, replace(much, variants=()), replace(much, fastest=())):
        lines = answers.lines(one, ["last"] * 4)
        assert 12 < len(lines) <= 2 * (answers.LINES + answers.LEAST)


def test_the_answer_names_a_slow_library_and_what_was_shown_to_help() -> None:
    def said(*variants: str) -> str:
        actual = answers.answers_of(frames.build(made(*variants)))
        (sentence,) = actual.slow
        assert any(line.startswith("pytorch multiplies") for line in answers.lines(actual, []))
        return sentence

    plain = said()
    assert plain.startswith("pytorch")
    assert "MKL 1" in plain
    assert "helps" not in plain
    assert said("default", "fast").endswith("helps: variant fast: 2.00x")
