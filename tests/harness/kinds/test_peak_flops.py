"""Peak-FLOPS benchmark through the command line."""

from __future__ import annotations

from typing import Any

import pytest
from harness.kinds import peak_flops

from ...bench import Bench
from ..validity import assert_outcome, assert_valid

PEAK = {
    "kind": "peak_flops",
    "batch_per_device": None,
    "compiler": None,
    "parameters": {"sustained_seconds": 0.2},
}


def tflops_of(block: dict[str, Any]) -> float:
    """Return TFLOP/s of matmuls with n rows: n^3 multiplications and n^3 additions each."""
    return 2e-12 * block["size"] ** 3 * block["count"] / min(block["seconds"])


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_the_peak_is_measured_with_matmuls_alone(toy: Bench, precision: str) -> None:
    done = toy.run("exact", **PEAK, precision=precision)
    assert_valid(done.record)
    assert (done.record["status"], done.record["kind"]) == ("ok", "peak_flops")
    assert done.record["case"]["batch_per_device"] is done.record["case"]["compiler"] is None
    assert "timed_steps" not in done.record["settings"], "no step was timed"
    (rank,) = done.record["ranks"]
    assert "step_seconds" not in rank
    sizes = [block["size"] for block in rank["matmuls"]]
    assert sizes == sorted(set(sizes))
    assert len(sizes) > 2, "a size was left out that had time"
    spent = sum(sum(block["seconds"]) for block in rank["matmuls"])
    assert spent < 2 * peak_flops.SECONDS, "the peak takes seconds, however slow the device"
    reached = done.record["metrics"]["peak"]
    assert reached["value"] == tflops_of(rank["sustained"])
    rates = {block["size"]: tflops_of(block) for block in rank["matmuls"]}
    assert rank["sustained"]["size"] == max(rates, key=rates.__getitem__)
    assert 0.2 <= rank["sustained"]["seconds"][0] < 2, "for as long as is asked, and not much more"
    assert (reached["unit"], reached["better"]) == ("TFLOP/s", "higher")
    # the toy's device does 1e11 operations per second; waiting only adds time
    assert 0.05 < reached["value"] <= 0.1, "a product was not waited for"
    assert "ok: peak 0." in done.stdout


def test_of_several_devices_the_slowest_tells_the_peak(toy: Bench) -> None:
    done = toy.run("exact,matmul=0.04", **PEAK, devices_per_node=2)
    assert_outcome(done.record, "ok")
    ranks = done.record["ranks"]
    rates = [tflops_of(rank["sustained"]) for rank in ranks]
    assert done.record["metrics"]["peak"]["value"] == min(rates) < max(rates)


def test_the_rate_of_a_single_size_is_no_peak(toy: Bench) -> None:
    record = toy.run("exact,matmul=0.1", **PEAK).record
    assert_outcome(record, "unsupported", "no peak: a product of 256 rows takes 0.1")
    assert record["metrics"]["peak"]["value"] is None


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("fp32_amp", "amp, but 1 of 1 matmuls ran in float32"),
        ("empty", "elements of a matmul of the shape"),
    ],
)
def test_matmuls_in_another_precision_or_with_wrong_results_fail(
    toy: Bench, behaviour: str, reason: str
) -> None:
    record = toy.run(behaviour, **PEAK, precision="amp").record
    assert_outcome(record, "failed", reason)
    assert record["metrics"]["peak"]["value"] is None
