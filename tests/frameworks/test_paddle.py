"""PaddlePaddle adapter in Paddle's own environment: features special to Paddle."""

import math
from typing import Any

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, served
from .processors import onednn_has_bfloat16
from .programs.small import small_bert, small_images

run = served("paddle")


@pytest.mark.parametrize("compiler", ["none", "to_static"])
@pytest.mark.parametrize(
    ("model_config", "products"),
    [(small_bert(dropout=0.1), BERT_PRODUCTS), (small_images(), RESNET_PRODUCTS)],
    ids=["bert", "resnet"],
)
def test_counting_products_changes_nothing(
    run: ForkServer, model_config: dict[str, Any], products: int, compiler: str
) -> None:
    (actual,) = run("paddle.trace", model_config=model_config, compiler=compiler)
    assert actual["matmul_dtypes"] == {"float32": products}
    assert actual["kept"], "looking at the products changed the running statistics"
    assert actual["random"], "looking at the products drew random numbers"
    assert actual["gradients"] == 0
    assert math.isfinite(actual["first"])


def test_amp_without_effect_is_unsupported_in_paddles_words(run: ForkServer) -> None:
    (actual,) = run("common.refuse", build=True, precision="amp")
    assert "float32" in actual["reason"]
    assert "it makes no effect" in actual["reason"]


@pytest.mark.skipif(
    not onednn_has_bfloat16(), reason="oneDNN has no bfloat16 on this processor: refused"
)
def test_amp_runs_in_a_program_where_paddle_can(run: ForkServer) -> None:
    """Fail if amp does not run in a program where Paddle can.
    oneDNN has bfloat16 matmuls for programs, and batch normalisation refuses bfloat16."""
    (actual,) = run("paddle.infer_in_bfloat16")
    assert actual["matmul_dtypes"] == {"bfloat16": BERT_PRODUCTS}
    assert actual["weights"] == ["paddle.float32"]
    assert 0 < actual["difference"] < 0.05 * actual["scale"]
    assert actual["compiled"]["programs"] == 1
    assert "batch_norm_" in actual["normalization"]
    assert "bfloat16" in actual["normalization"]


def test_programs_are_proved_to_have_run(run: ForkServer) -> None:
    (actual,) = run("paddle.leave_programs")
    assert actual["early"], "a program that did not run yet counts as compiled"
    assert actual["disabled"], "a model in the dynamic graph counts as compiled"
    assert actual["programs"] == 1, "the model was traced more than once"
    assert actual["forward_operations"] > 0
    assert actual["same"] < 1e-6


def test_a_build_without_cuda_says_so(run: ForkServer) -> None:
    (actual,) = run("paddle.refuse_gpus")
    assert "without CUDA" in actual["cuda"]


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("paddle.run_out_of_memory")
    assert actual == {"memory": True, "shape": False, "program": True}


@pytest.mark.parametrize("frozen", [False, True], ids=["default", "in a timed window"])
def test_no_worker_of_a_loader_ends_inherited_garbage(run: ForkServer, frozen: bool) -> None:
    """Fail if a loader's worker finalises an inherited reader: it waits forever for parent
    threads."""
    (actual,) = run("paddle.collect_garbage", frozen=frozen)
    assert actual == {"given": [[[0.0, 0.0]], [[0.0, 0.0]]], "ended": True, "kept": True}
