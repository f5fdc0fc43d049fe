"""OneFlow adapter in OneFlow's own environment: features special to OneFlow."""

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

# Matmuls of a BERT without encoder layers.
HEADS_PRODUCTS = BERT_PRODUCTS - 2 * LAYER_PRODUCTS


run = served("oneflow")


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_synchronize_waits_for_what_was_enqueued(run: ForkServer, compiler: str) -> None:
    """Fail if work is left when synchronize returns.
    OneFlow runs asynchronously on a CPU, too, in both modes."""
    (actual,) = run("oneflow.synchronize", compiler=compiler)
    assert actual["waited"] > actual["late"], "synchronize() returned before the work was done"
    assert actual["values"] == sorted(actual["values"], reverse=True)


def test_eager_dropout_differs_between_layers_steps_and_ranks(run: ForkServer) -> None:
    """Fail if eager dropout repeats between layers, steps or ranks.
    In OneFlow 0.9.0 each nn.Dropout has a generator with the same seed, whatever manual_seed() set.
    """
    first, second = run("oneflow.drop_elements", ranks=2, compiler="none")
    assert first["masks"][0] != first["masks"][1], "two layers drop the same positions"
    assert not first["again"], "two steps drop the same positions"
    assert first["one"] != second["one"], "two ranks drop the same positions"


def test_a_graphs_dropout_differs_between_steps_and_the_record_says_how(run: ForkServer) -> None:
    (actual,) = run("oneflow.drop_elements", compiler="graph")
    assert not actual["again"], "two steps drop the same positions"
    assert actual["settings"]["dropout_has_seeds"] is False


@pytest.mark.parametrize(
    ("model_config", "mode", "eager", "graph"),
    [
        # a matmul of the forward pass has two in the backward pass
        (small_bert(dropout=0.1, layers=0), "train", HEADS_PRODUCTS, 3 * HEADS_PRODUCTS),
        (small_images(), "inference", RESNET_PRODUCTS, RESNET_PRODUCTS),
    ],
    ids=["bert", "resnet"],
)
def test_eager_mode_and_graph_count_the_same_products(
    run: ForkServer, model_config: dict[str, Any], mode: str, eager: int, graph: int
) -> None:
    (actual,) = run("oneflow.trace", model_config=model_config, mode=mode)
    assert actual["eager"][0] == {"float32": eager}
    assert actual["graph"][0] == {"float32": graph}
    assert actual["eager"][1] == actual["graph"][1] > 0
    assert actual["kept"], "looking at the products changed the model"
    assert actual["random"], "looking at the products drew random numbers"


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_amp_that_has_no_effect_is_unsupported_in_oneflows_words(
    run: ForkServer, compiler: str
) -> None:
    (actual,) = run("common.refuse", precision="amp", compiler=compiler)
    assert "CPU autocast is not supported currently" in str(actual["reason"])
    assert "float32" in str(actual["reason"])


def test_compiled_raises_where_nothing_was_compiled(run: ForkServer) -> None:
    (actual,) = run("oneflow.compile_nothing")
    assert actual["compiled"]["matmuls"] == 3 * HEADS_PRODUCTS
    assert actual["compiled"]["operators"] > actual["compiled"]["matmuls"]
    assert actual["reason"], "a step that was not compiled counts as compiled"


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_optimizers_follow_torch(run: ForkServer, compiler: str) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (actual,) = run("oneflow.follow_torch", compiler=compiler)
    assert actual["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert actual["adamw"] < 1e-4, "AdamW does not follow torch.optim"


CLIPPED = small_bert(layers=0, clip_global_norm=0.01)


@pytest.fixture(scope="module")
def alone(run: ForkServer) -> list[dict[str, Any]]:
    """Return the results of each half by itself, in eager mode."""
    return [run("common.average", model_config=CLIPPED, halves=[half])[0] for half in range(2)]


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_two_ranks_average_gradients(
    run: ForkServer, alone: list[dict[str, Any]], compiler: str
) -> None:
    """Fail if two ranks share losses or do not average gradients.
    Also fail if gradients accumulate in the buckets of DistributedDataParallel, as without views.
    """
    ranks = run("common.average", ranks=2, model_config=CLIPPED, compiler=compiler)
    mean = [(a + b) / 2 for a, b in zip(*(entry["gradients"] for entry in alone), strict=True)]
    for rank, number in zip(ranks, alone, strict=True):
        assert rank["total"] == 3.0
        assert rank["loss"] == pytest.approx(number["loss"], rel=1e-6)
        assert distance(rank["gradients"], mean) < 1e-5 * norm(mean)
        assert rank["changed"] < 1e-5 * norm(mean), "gradients pile up"
    assert ranks[0]["checksum"] == ranks[1]["checksum"]
    kind = "DDP" if compiler == "none" else "global tensors"
    assert ranks[0]["settings"]["data_parallel"] == kind


def test_batch_normalisation_of_a_graph_takes_each_ranks_own_statistics(run: ForkServer) -> None:
    ranks = run("oneflow.normalise", ranks=2)
    for rank in ranks:
        difference = distance(rank["together"], rank["alone"])
        assert difference < 1e-5 * norm(rank["alone"]), "batch normalisation saw other ranks"
    assert ranks[0]["running"] != ranks[1]["running"]


def test_masked_tokens_are_not_attended_to(run: ForkServer) -> None:
    (actual,) = run("oneflow.hide")
    assert actual["hidden"] == 0.0, "a token outside the attention mask changes the outputs"
    assert actual["seen"] > 0.0, "no token is attended to"


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_another_batch_is_built_afresh(run: ForkServer, compiler: str) -> None:
    (actual,) = run("oneflow.build_again", compiler=compiler)
    assert actual["kept"]
    assert actual["differs"], "the batch of an earlier build() is still used"
    assert actual["read"] == pytest.approx(actual["mean"], rel=1e-6)


def test_a_nan_is_read_as_it_is(run: ForkServer) -> None:
    (actual,) = run("common.read_nan", model_config=small_images(blocks=1))
    assert math.isnan(actual["poisoned"]), "a NaN in the input was lost on the way to the loss"


def test_a_gpu_that_is_not_there_is_unsupported(run: ForkServer) -> None:
    (actual,) = run("common.refuse_gpu")
    assert "CUDA" in str(actual["reason"])


def test_clipping_knows_the_norm_of_many_gradients(run: ForkServer) -> None:
    """Fail if clipping uses OneFlow's norm, off by a fortieth for BERT's word embeddings."""
    (actual,) = run("oneflow.clip")
    assert actual["norm"] == pytest.approx(0.5, rel=1e-5)
    assert actual["kept"]
