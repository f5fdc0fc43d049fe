"""Matmuls of a step: which there are, and their time alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from core.matmuls import MatmulShape
from framebench.config import catalog
from framebench.records.run import MetricValue, Run
from framebench.report import drawings
from framebench.report.plots import Look
from framebench.tables import frames
from framebench.tables.declared.matmul_share import LEAST_COVERED, MATMUL_SHARE
from framebench.tables.expectation import matmuls
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ...conftest import ROOT
from ..made_up_peaks import FORWARD_MATMULS, matmul_rates
from ..made_up_runs import measured as of_kind
from ..made_up_runs import run
from ..table_rows import only

MODELS = catalog.load_catalog(ROOT).models
KNOWN = [
    name
    for name, model_config in MODELS.items()
    if model_config.get("definition") in ("bert", "decoder")
]
#: One layer of two heads, and a head of three classes: a sample of two tokens.
SMALL: dict[str, Any] = {
    "definition": "bert",
    "sequence_lengths": [1, 8],
    "forward_multiply_adds": {"per_sample": 28, "per_token": 128, "per_token_pair": 8},
    "hyperparameters": {"hidden": 4, "intermediate": 8, "layers": 1, "heads": 2, "classes": 3},
}
RESNET: dict[str, Any] = {
    "definition": "cnn",
    "sequence_lengths": [],
    "forward_multiply_adds": {"per_sample": 500},
}
CASE: dict[str, Any] = {
    "model": "small", "mode": "inference", "batch_per_device": 1, "sequence_length": 2,
    "hardware": "Example CPU", "cores_per_device": 1,
}  # fmt: skip


# ---- which matmuls there are --------------------------------------------------------------------


def test_a_forward_pass_has_these_products() -> None:
    assert matmuls.of_step(SMALL, 1, 2, trains=False) == FORWARD_MATMULS
    without = matmuls.of_step(SMALL, 1, 2, trains=False, attention=False)
    assert {*FORWARD_MATMULS} - {*without} == {MatmulShape(2, 2, 2, 2)}


def multiply_adds(shapes: Mapping[MatmulShape, int]) -> int:
    return sum(shape.multiply_adds * count for shape, count in shapes.items())


def test_training_has_three_for_each() -> None:
    actual = matmuls.of_step(SMALL, 1, 2, trains=True)
    assert actual[MatmulShape(1, 2, 8, 4)] == 2, (
        "one forward, one of the gradient of the widening's input"
    )
    assert actual[MatmulShape(1, 4, 2, 8)] == 1, "of the widening's weights"
    assert multiply_adds(actual) == 3 * multiply_adds(FORWARD_MATMULS)


@pytest.mark.parametrize("name", KNOWN)
def test_the_products_of_a_model_are_all_that_its_facts_count(name: str) -> None:
    for length in (16, 128):
        for batch in (1, 3):
            actual = matmuls.of_step(MODELS[name], batch, length, trains=False)
            counted = batch * catalog.forward_multiply_adds(MODELS[name], length)
            assert multiply_adds(actual) == counted, (name, batch, length)


def test_there_are_models_whose_products_are_known() -> None:
    assert {"bert_base", "gpt2_small", "llama_1b", "superbench_bert_base"} <= {*KNOWN}


@pytest.mark.parametrize("name", ["resnet50", "superbench_lstm", "electra_base"])
def test_other_models_have_none(name: str) -> None:
    assert not matmuls.of_step(MODELS[name], 1, 128, trains=False)


def test_a_shape_is_written_as_in_a_suite() -> None:
    assert [str(MatmulShape(1, 2, 3, 4)), str(MatmulShape(5, 2, 3, 4))] == ["2x3x4", "5x2x3x4"]


# ---- the table ----------------------------------------------------------------------------------


def table(*runs: Run) -> pd.DataFrame:
    cases = group(runs, None)
    steps, others = (
        {key: result for key, result in cases.items() if key.case.is_step is is_step}
        for is_step in (True, False)
    )
    inputs = Inputs(steps, models={"small": SMALL, "resnet": RESNET, **MODELS}, others=others)
    return frames.frame(MATMUL_SHARE, MATMUL_SHARE.rows(inputs))


#: 4 x 32 + 2 x 16 + 64 + 64 + 16 + 12 multiply-adds.
ALL = 316


def test_products_are_summed_beside_the_step() -> None:
    """Fail if matmul times are not summed next to the step time.
    632 operations at a billionth of a TFLOP/s, a thousand per second: 632 ms of a second."""
    actual = only(table(run(1.0, **CASE), matmul_rates(*FORWARD_MATMULS)))
    assert actual["covered"] == 1.0
    assert actual["matmuls_alone_ms"] == pytest.approx(2 * ALL)
    assert actual["step_time_ms"] == 1000.0
    assert actual["matmul_share"] == pytest.approx(0.632)
    assert actual["rest_ms"] == pytest.approx(368)
    assert actual["reason"] == ""


def test_a_shape_is_taken_as_fast_as_its_fastest() -> None:
    slow, fast = (
        matmul_rates(*FORWARD_MATMULS),
        matmul_rates(*FORWARD_MATMULS, tflops=2e-9, transposed="second"),
    )
    assert only(table(run(1.0, **CASE), slow, fast))["matmuls_alone_ms"] == pytest.approx(ALL)


def test_what_is_not_measured_counts_for_nothing_and_is_named() -> None:
    widening = MatmulShape(1, 2, 4, 8)
    actual = only(
        table(
            run(1.0, **CASE),
            matmul_rates(
                *(
                    forward_matmul
                    for forward_matmul in FORWARD_MATMULS
                    if forward_matmul != widening
                )
            ),
        )
    )
    assert actual["covered"] == pytest.approx(1 - 64 / ALL)
    assert pd.isna(actual["matmuls_alone_ms"])
    assert pd.isna(actual["matmul_share"])
    assert actual["reason"] == (
        "80% of its operations were measured, 90% are needed: kind matmul of pytorch in fp32, "
        "devices_per_node 1, shapes: 2x4x8"
    )
    least = only(
        table(
            run(1.0, **CASE),
            matmul_rates(
                *(forward_matmul for forward_matmul in FORWARD_MATMULS if forward_matmul.m > 1)
            ),
        )
    )
    assert LEAST_COVERED < least["covered"] < 1
    assert least["matmuls_alone_ms"] == pytest.approx(2 * (ALL - 28)), "its own part alone"


def test_training_needs_the_shapes_of_the_backward_pass() -> None:
    made = run(1.0, **{**CASE, "mode": "train"})
    actual = only(table(made, matmul_rates(*FORWARD_MATMULS)))
    assert actual["covered"] < 0.9
    step = matmuls.of_step(SMALL, 1, 2, trains=True)
    actual = only(table(made, matmul_rates(*step)))
    assert actual["matmuls_alone_ms"] == pytest.approx(6 * ALL)


@pytest.mark.parametrize(
    "other",
    [
        {"framework": "jax"},
        {"framework_version": "2.7.0"},
        {"precision": "amp"},
        {"devices_per_node": 2},
        {"cores_per_device": 2},
        {"hardware": "Another CPU"},
    ],
)
def test_products_measured_elsewhere_cover_nothing(other: dict[str, Any]) -> None:
    actual = only(table(run(1.0, **CASE), matmul_rates(*FORWARD_MATMULS, **other)))
    assert actual["covered"] == 0.0
    assert "2x4x4 2x4x8 2x8x4" in actual["reason"]


def test_models_of_other_operations_have_no_row_and_without_products_there_is_no_table() -> None:
    assert not len(table(run(1.0), matmul_rates(*FORWARD_MATMULS)))
    assert not len(table(run(1.0, **CASE)))
    assert not MATMUL_SHARE.always


# ---- operations that are measured model by model ------------------------------------------------


def of_model(kind: str, operations: dict[str, tuple[int, float]], **changes: Any) -> Run:
    """Return a run with operations of a model by name: their number in it, and their size.
    A thousand of them per second run in the forward pass; in the backward pass, with twice as many,
    two thousand."""
    metrics = [MetricValue("model_rate", 1e-9, "TFLOP/s")]
    for name, (times, work) in operations.items():
        at = (("images", name), ("stride", 1), ("times", times))
        metrics += [
            MetricValue("forward_rate", 1e-9, "TFLOP/s", point=at),
            MetricValue("forward_time", 1e3 * work, "us", "lower", at),
            MetricValue("backward_rate", 2e-9, "TFLOP/s", point=at),
            MetricValue("backward_time", 1e3 * work, "us", "lower", at),
        ]
    case = {
        "framework": "pytorch", "framework_version": "2.8.0", "precision": "fp32",
        "model": "resnet", "batch_per_device": 2,
    }  # fmt: skip
    made = of_kind(kind, metrics)
    where = replace(made.conditions, cores_per_device=1)
    return replace(
        made,
        case=made.case._replace(**{**case, **changes}),
        conditions=where,
        hardware="Example CPU",
    )


#: An image has 500 multiply-adds; two images have 2000 operations.
CONVOLVED: dict[str, Any] = {
    **CASE,
    "model": "resnet",
    "batch_per_device": 2,
    "sequence_length": None,
}
CONVOLUTIONS = {"a": (3, 400.0), "b": (1, 700.0)}


def test_operations_of_a_model_count_as_often_as_it_has_them() -> None:
    actual = only(table(run(1.0, **CONVOLVED), of_model("convolution", CONVOLUTIONS)))
    assert actual["covered"] == pytest.approx(0.95)
    assert actual["matmuls_alone_ms"] == pytest.approx(1900)
    assert actual["rest_ms"] == pytest.approx(100), "of a step of two seconds"
    training = run(1.0, **{**CONVOLVED, "mode": "train", "accumulation": 2})
    actual = only(table(training, of_model("convolution", CONVOLUTIONS)))
    assert actual["covered"] == pytest.approx(0.95)
    assert actual["matmuls_alone_ms"] == pytest.approx(2 * 3800), "two micro-steps of both passes"


@pytest.mark.parametrize(
    "other", [{"model": "vgg"}, {"batch_per_device": 4}, {"precision": "amp"}, {"framework": "jax"}]
)
def test_operations_of_another_case_cover_nothing(other: dict[str, Any]) -> None:
    assert not len(table(run(1.0, **CONVOLVED), of_model("convolution", CONVOLUTIONS, **other)))


def test_less_than_is_needed_and_more_than_there_is_have_no_figure() -> None:
    for some, reason in (
        ({"a": (1, 400.0)}, "20% of its operations were measured, 90% are needed: its matmuls"),
        ({"a": (6, 400.0)}, "120% of its operations were measured: more than the step has"),
    ):
        actual = only(table(run(1.0, **CONVOLVED), of_model("convolution", some)))
        assert pd.isna(actual["matmuls_alone_ms"])
        assert reason in actual["reason"]


def test_attention_stands_in_the_place_of_its_products() -> None:
    """Fail if attention is counted twice, once by its own benchmark and once by its matmuls.
    Both are measured: 64 operations of heads, which take 64 ms."""
    attention = of_model(
        "attention", {"heads": (1, 64.0)}, model="small", batch_per_device=1, sequence_length=2
    )
    actual = only(table(run(1.0, **CASE), attention, matmul_rates(*FORWARD_MATMULS, tflops=2e-9)))
    assert actual["covered"] == pytest.approx(1.0)
    assert actual["matmuls_alone_ms"] == pytest.approx(64 + (2 * ALL - 64) / 2)
    longer = replace(attention, case=attention.case._replace(sequence_length=4))
    actual = only(table(run(1.0, **CASE), longer, matmul_rates(*FORWARD_MATMULS, tflops=2e-9)))
    assert actual["matmuls_alone_ms"] == pytest.approx(ALL), "of sequences of another length"


# ---- the plot -----------------------------------------------------------------------------------


def test_a_step_is_a_bar_of_its_operations_and_the_rest() -> None:
    (plot,) = drawings.of_table(
        MATMUL_SHARE,
        table(run(1.0, **CASE), matmul_rates(*FORWARD_MATMULS)),
        Inputs({}),
        Look(["pytorch"]),
    )
    (told,) = re.findall(r'data-tip="([^"]*)"', plot.svg)
    assert told.endswith(": matmuls and convolutions alone 63.2, rest 36.8 (% of the step)")
    assert ">1000 ms<" in plot.svg
    joined = table(run(2.0, **CASE), matmul_rates(*FORWARD_MATMULS))
    (plot,) = drawings.of_table(MATMUL_SHARE, joined, Inputs({}), Look(["pytorch"]))
    (told,) = re.findall(r'data-tip="([^"]*)"', plot.svg)
    assert told.endswith("alone 126.4 (% of the step)"), "longer than the step: there is no rest"
    without = table(run(1.0, **CASE), matmul_rates(MatmulShape(1, 2, 4, 4)))
    assert drawings.of_table(MATMUL_SHARE, without, Inputs({}), Look(["pytorch"])) == []
