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
    (found,) = run("tensorflow.describe_resnet")
    assert found["layers"] == 53
    assert found["biases"] == 0, "a convolution before a batch normalisation has a bias"
    assert found["strided"] == [1, 1, 1, 3, 3, 3, 7], "v1.5 strides in the 3x3 convolution"
    assert found["symmetric"] == [True] * 4, "a strided convolution pads one side only"
    assert found["norms"] == [[1e-05, 0.9]]
    assert found["different"]


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_batch_normalisation_is_fused(run: ForkServer, precision: str) -> None:
    (found,) = run("tensorflow.trace_normalisation", precision=precision)
    assert found["layers"] > 1
    assert found["forward"] == found["backward"] == found["layers"]
    assert found["apart"] == 0


def test_bert_has_a_tied_decoder(run: ForkServer) -> None:
    (found,) = run("tensorflow.tie_decoder")
    assert found["embeddings"] == 1, "the decoder has a weight of its own"
    assert found["decoder_biases"] == 1
    assert found["tied"], "the decoder does not use the token embedding"
    assert not found["repeated"], "two weights started from the same values"


def test_bert_honours_the_mask(run: ForkServer) -> None:
    (found,) = run("tensorflow.honour_mask")
    assert found["shapes"] == [[2, 2, 50], [2, 2]]
    assert found["read"] == pytest.approx(found["mean"], rel=1e-12)
    assert found["hidden"] == 0.0, "a token outside the attention mask changes the outputs"
    assert found["seen"] > 0.0, "no token is attended to"


def test_bert_layer_equals_keras_own_attention(run: ForkServer) -> None:
    (found,) = run("tensorflow.compare_layer")
    assert found["difference"] < 1e-5, "a layer computes something else than BERT's encoder layer"


def test_optimizers_follow_torch(run: ForkServer) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (found,) = run("tensorflow.follow_torch")
    assert found["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert found["adamw"] < 1e-4, "AdamW's epsilon is not outside the bias correction"


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
    for found in (alone, first):
        assert found["compiled"] == {"xla_functions": 2}, "another program than on one device"
        assert found["settings"]["xla_scope"] == "forward and backward pass, optimizer"


# A matmul of the forward pass has two in the backward pass.
@pytest.mark.parametrize(
    ("facts", "products"),
    [
        (small_bert(dropout=0.1, layers=1), 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)),
        (small_images(), 3 * RESNET_PRODUCTS),
    ],
    ids=["bert", "resnet"],
)
def test_all_products_of_amp_are_seen_and_run_in_bfloat16(
    run: ForkServer, facts: dict[str, Any], products: int
) -> None:
    (found,) = run("tensorflow.trace_amp", facts=facts)
    assert found["matmul_dtypes"] == {"bfloat16": products}
    assert found["kept"], "looking at the products changed the model"
    assert math.isfinite(found["loss"])
    settings = found["settings"]
    assert settings["amp_dtype"] == "bfloat16"
    assert settings["tf32"] is False
    assert settings["intra_op_threads"] == 1


def test_float16_scales_its_loss_and_skips_what_overflows(run: ForkServer) -> None:
    (found,) = run("tensorflow.scale_loss")
    assert found["matmul_dtypes"] == {"float16": 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)}
    assert found["unscaled"] < 1e-2, "the scale of the loss is in the gradients"
    assert found["losses"][-1] < found["losses"][0]
    assert found["kept"], "an overflow reached the weights"
    assert found["scale"] == pytest.approx(5e37)


def test_compiled_raises_where_xla_did_not_compile(run: ForkServer) -> None:
    (found,) = run("tensorflow.compile_nothing")
    assert found["reason"], "a step that XLA did not compile counts as compiled"


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("tensorflow.run_out_of_memory")
    assert found == {"xla": True, "shapes": False}
