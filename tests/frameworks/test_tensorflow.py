"""TensorFlow adapter in TensorFlow's own environment: features special to TensorFlow."""

import math
from typing import Any

import pytest

from .fork_server import (
    BERT_PRODUCTS,
    LAYER_PRODUCTS,
    RESNET_PRODUCTS,
    ForkServer,
    distance,
    norm,
    served,
)
from .programs.small import small_bert, small_images

run = served("tensorflow")


def test_resnet50_is_version_1_5(run: ForkServer) -> None:
    (actual,) = run("tensorflow.describe_resnet")
    assert actual["layers"] == 53
    assert actual["biases"] == 0, "a convolution before a batch normalisation has a bias"
    assert actual["strided"] == [1, 1, 1, 3, 3, 3, 7], "v1.5 strides in the 3x3 convolution"
    assert actual["symmetric"] == [True] * 4, "a strided convolution pads one side only"
    assert actual["norms"] == [[1e-05, 0.9]]
    assert actual["different"]


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_batch_normalisation_is_fused(run: ForkServer, precision: str) -> None:
    (actual,) = run("tensorflow.trace_normalisation", precision=precision)
    assert actual["layers"] > 1
    assert actual["forward"] == actual["backward"] == actual["layers"]
    assert actual["apart"] == 0


def test_bert_has_a_tied_decoder(run: ForkServer) -> None:
    (actual,) = run("tensorflow.tie_decoder")
    assert actual["embeddings"] == 1, "the decoder has a weight of its own"
    assert actual["decoder_biases"] == 1
    assert actual["tied"], "the decoder does not use the token embedding"
    assert not actual["repeated"], "two weights started from the same values"


def test_bert_honours_the_mask(run: ForkServer) -> None:
    (actual,) = run("tensorflow.honour_mask")
    assert actual["shapes"] == [[2, 2, 50], [2, 2]]
    assert actual["read"] == pytest.approx(actual["mean"], rel=1e-12)
    assert actual["hidden"] == 0.0, "a token outside the attention mask changes the outputs"
    assert actual["seen"] > 0.0, "no token is attended to"


def test_bert_layer_equals_keras_own_attention(run: ForkServer) -> None:
    (actual,) = run("tensorflow.compare_layer")
    assert actual["difference"] < 1e-5, "a layer computes something else than BERT's encoder layer"


def test_optimizers_follow_torch(run: ForkServer) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (actual,) = run("tensorflow.follow_torch")
    assert actual["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert actual["adamw"] < 1e-4, "AdamW's epsilon is not outside the bias correction"


def test_two_ranks_average_and_then_clip_their_gradients(run: ForkServer) -> None:
    (alone,) = run("tensorflow.average")
    first, second = run("tensorflow.average", ranks=2)
    assert first["settings"]["strategy"] == "CollectiveAllReduceStrategy"
    assert first["reached"] == second["reached"] == 3.0
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["start"] == second["start"] == alone["start"]
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    length = norm(alone["gradients"])
    assert distance(first["gradients"], alone["gradients"]) < 1e-4 * length, (
        "the gradients of two ranks are not those of one process with both batches"
    )
    assert first["checksum"] == second["checksum"]
    # The average of two clipped gradients would be shorter than the limit.
    assert norm(first["clipped"]) == pytest.approx(0.01, rel=1e-3)
    assert first["clipped"] == second["clipped"]
    for entry in (alone, first):
        assert entry["compiled"] == {"xla_functions": 2}, "another program than on one device"
        assert entry["settings"]["xla_scope"] == "forward and backward pass, optimizer"


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
