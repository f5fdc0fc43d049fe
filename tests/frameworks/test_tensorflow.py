"""TensorFlow adapter in TensorFlow's own environment: features special to TensorFlow."""

import math
from typing import Any

import pytest

from .fork_server import (
    BERT_PRODUCTS,
    LAYER_PRODUCTS,
    RESNET_PRODUCTS,
    ForkServer,
    served,
)
from .programs.small import small_bert, small_images

run = served("tensorflow")


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_batch_normalisation_is_fused(run: ForkServer, precision: str) -> None:
    (actual,) = run("tensorflow.trace_normalisation", precision=precision)
    assert actual["layers"] > 1
    assert actual["forward"] == actual["backward"] == actual["layers"]
    assert actual["apart"] == 0


# A matmul of the forward pass has two in the backward pass.
@pytest.mark.parametrize(
    ("model_config", "products"),
    [
        (small_bert(dropout=0.1, layers=1), 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)),
        (small_images(), 3 * RESNET_PRODUCTS),
    ],
    ids=["bert", "resnet"],
)
def test_all_products_of_amp_are_seen_and_run_in_bfloat16(
    run: ForkServer, model_config: dict[str, Any], products: int
) -> None:
    (actual,) = run("tensorflow.trace_amp", model_config=model_config)
    assert actual["matmul_dtypes"] == {"bfloat16": products}
    assert actual["kept"], "looking at the products changed the model"
    assert math.isfinite(actual["loss"])
    settings = actual["settings"]
    assert settings["amp_dtype"] == "bfloat16"
    assert settings["tf32"] is False
    assert settings["intra_op_threads"] == 1


def test_float16_scales_its_loss_and_skips_what_overflows(run: ForkServer) -> None:
    (actual,) = run("tensorflow.scale_loss")
    assert actual["matmul_dtypes"] == {"float16": 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)}
    assert actual["unscaled"] < 1e-2, "the scale of the loss is in the gradients"
    assert actual["losses"][-1] < actual["losses"][0]
    assert actual["kept"], "an overflow reached the weights"
    assert actual["scale"] == pytest.approx(5e37)


def test_compiled_raises_where_xla_did_not_compile(run: ForkServer) -> None:
    (actual,) = run("tensorflow.compile_nothing")
    assert actual["reason"], "a step that XLA did not compile counts as compiled"


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("tensorflow.run_out_of_memory")
    assert actual == {"xla": True, "shapes": False}
