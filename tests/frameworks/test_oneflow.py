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


def test_a_graphs_dropout_differs_between_steps_and_the_record_says_how(run: ForkServer) -> None:
    (actual,) = run("oneflow.drop_elements", compiler="graph")
    assert not actual["again"], "two steps drop the same positions"


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
    assert actual["eager"] == {"float32": eager}
    assert actual["graph"] == {"float32": graph}
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


CLIPPED = small_bert(layers=0, clip_global_norm=0.01)


def test_batch_normalisation_of_a_graph_takes_each_ranks_own_statistics(run: ForkServer) -> None:
    ranks = run("oneflow.normalise", ranks=2)
    for rank in ranks:
        difference = distance(rank["together"], rank["alone"])
        assert difference < 1e-5 * norm(rank["alone"]), "batch normalisation saw other ranks"
    assert ranks[0]["running"] != ranks[1]["running"]


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_another_batch_is_built_afresh(run: ForkServer, compiler: str) -> None:
    (actual,) = run("oneflow.build_again", compiler=compiler)
    assert actual["kept"]
    assert actual["differs"], "the batch of an earlier build() is still used"
    assert actual["read"] == pytest.approx(actual["mean"], rel=1e-6)


def test_a_nan_is_read_as_it_is(run: ForkServer) -> None:
    (actual,) = run("common.read_nan", model_config=small_images(blocks=1))
    assert math.isnan(actual["poisoned"]), "a NaN in the input was lost on the way to the loss"


def test_clipping_knows_the_norm_of_many_gradients(run: ForkServer) -> None:
    """Fail if clipping uses OneFlow's norm, off by a fortieth for BERT's word embeddings."""
    (actual,) = run("oneflow.clip")
    assert actual["norm"] == pytest.approx(0.5, rel=1e-5)
    assert actual["kept"]
