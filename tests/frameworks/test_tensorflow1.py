"""TensorFlow 1 adapter in TensorFlow's own environment: features special to TensorFlow 1."""

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

run = served("tensorflow1")


def test_only_a_step_moves_running_statistics(run: ForkServer) -> None:
    """Fail if anything but a step updates running statistics.
    They are not part of the loss: a session updates them only when told to."""
    (actual,) = run("tensorflow1.move_statistics")
    convolutions = 1 + 3 + 1  # the first, those of a block and its shortcut
    # Two in the backward pass for each in the forward pass, but none for the images' gradient.
    assert actual["matmul_dtypes"] == {"float32": 3 * (convolutions + 1) - 1}
    assert actual["kept"], "looking at the model changed it"
    assert actual["moved"] == actual["statistics"] == 2 * convolutions
    assert actual["trainable"] == 3 * convolutions + 2
    assert not actual["running"]


@pytest.mark.parametrize(
    ("model_config", "products"),
    [(small_bert(), BERT_PRODUCTS), (small_images(), RESNET_PRODUCTS)],
    ids=["bert", "resnet"],
)
def test_products_in_fused_operations_are_counted(
    run: ForkServer, model_config: dict[str, Any], products: int
) -> None:
    (actual,) = run("tensorflow1.trace", model_config=model_config)
    assert actual["matmul_dtypes"] == {"float32": products}


def test_an_inference_step_computes_everything_and_fetches_nothing(run: ForkServer) -> None:
    (actual,) = run("tensorflow1.infer")
    assert actual["executed"] == BERT_PRODUCTS
    assert actual["fetched"] == "[None]", "the outputs are copied to the host in every step"
    assert actual["before"] == pytest.approx(actual["first"])
    assert actual["after"] != actual["before"], "the step did not compute its outputs anew"
    assert actual["right"]


@pytest.mark.parametrize("mode", ["train", "inference"])
def test_amp_without_a_gpu_is_unsupported_for_tensorflows_reason(
    run: ForkServer, mode: str
) -> None:
    (actual,) = run("tensorflow1.refuse_amp", mode=mode)
    assert "No (suitable) GPUs detected" in str(actual["reason"])
    assert actual["rewritten"] is None, "would be refused on the day that it works"


def test_xla_compiles_all_products_of_the_step(run: ForkServer) -> None:
    (actual,) = run("tensorflow1.compile_all")
    assert actual["matmul_dtypes"] == {"float32": 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)}
    # A layer, embeddings and heads, forward and backward.
    assert actual["proof"]["clusters"] >= 6
    assert actual["compiled"] == pytest.approx(actual["plain"], rel=1e-5)
    assert actual["remapping"] is False


def test_compiled_raises_where_xla_left_something_out(run: ForkServer) -> None:
    (actual,) = run("tensorflow1.compile_parts")
    assert "0 clusters" in str(actual["nothing"])
    assert "MatMul" in str(actual["layer"]), "a layer that was left out counts as compiled"


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("tensorflow1.run_out_of_memory")
    assert actual == {"allocation": True, "host": True, "missing": False}
