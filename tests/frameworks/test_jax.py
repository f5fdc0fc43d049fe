"""JAX adapter in JAX's own environment: features special to JAX."""

import math
from typing import Any

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, distance, norm, served
from .programs.small import small_bert, small_images

run = served("jax")


def test_a_plugin_that_does_not_work_gives_the_reason(run: ForkServer) -> None:
    (actual,) = run("jax.take_broken_plugin")
    assert "Unknown backend cuda" in actual["reason"]
    assert actual["reason"].endswith("; xla_cuda13: Unable to load cuPTI. Is it installed?")


def test_amp_is_unsupported_where_xla_multiplies_in_float32(run: ForkServer) -> None:
    """Fail if amp runs where XLA multiplies in float32.
    XLA for CPUs keeps bfloat16 arrays but widens some of their matmuls; JAX's own graph hides
    it."""
    (actual,) = run("jax.probe_amp")
    assert {form for dtypes in actual["single"].values() for form in dtypes} == {"float32"}
    forms = actual["half"]
    if any("float32" in executed for executed in actual["executed"].values()):
        assert actual["reason"] is not None
        for form in set(forms) - {"convolution"}:  # of a training of BERT
            assert (form in actual["reason"]) == ("float32" in forms[form])
    else:
        assert actual["reason"] is None


def test_amp_is_refused_for_what_the_case_computes_alone(run: ForkServer) -> None:
    """Fail if a transformer that only answers is refused for gradients and convolutions."""
    amx = ["weight gradient", "convolution"]
    (actual,) = run("jax.refuse_amp", widened=amx)
    assert {case for case, reason in actual.items() if reason is None} == {
        "bert_base inference",
        "bert_base generate",
    }
    assert "in weight gradient:" in actual["bert_base train"]
    (actual,) = run("jax.refuse_amp", widened=[*amx, "attention"])
    assert all(actual.values())


@pytest.mark.parametrize(
    ("model_config", "precision", "products"),
    [
        (small_bert(dropout=0.1), "fp32", {"float32": 3 * BERT_PRODUCTS}),
        (small_bert(dropout=0.1), "amp", {"bfloat16": 3 * BERT_PRODUCTS}),
        # images have no gradient
        (small_images(), "amp", {"bfloat16": 3 * RESNET_PRODUCTS - 1}),
    ],
    ids=["bert in fp32", "bert", "resnet"],
)
def test_products_have_the_precision_asked_for(
    run: ForkServer, model_config: dict[str, Any], precision: str, products: dict[str, int]
) -> None:
    """Fail if matmuls do not have the requested precision.
    Mixed precision is traced as on a device that supports it."""
    (actual,) = run("jax.trace", model_config=model_config, precision=precision)
    assert actual["matmul_dtypes"] == products
    assert actual["master"] == ["float32"]
    assert actual["logits"] == list({"fp32": ["float32"], "amp": ["bfloat16"]}[precision])
    assert actual["amp"] == (None if precision == "fp32" else "bfloat16")


def test_float32_that_may_become_tf32_does_not_count_as_float32(run: ForkServer) -> None:
    (actual,) = run("jax.let_products_become_tf32")
    assert actual["before"] == {"float32": BERT_PRODUCTS}
    assert "float32" not in actual["after"]
    assert sum(actual["after"].values()) == BERT_PRODUCTS


def test_compiled_is_one_executable_that_keeps_its_memory(run: ForkServer) -> None:
    (actual,) = run("jax.compile_once")
    assert actual["executables"] == 1
    assert actual["fusions"] > 0
    assert actual["compilations"] == [], "steps behind the first compiled something"
    assert actual["donated"], "the state is copied in every step"


def test_compiled_raises_where_xla_compiled_nothing(run: ForkServer) -> None:
    (actual,) = run("jax.compile_nothing")
    assert "operation by operation" in str(actual["reason"])


def test_a_step_is_complete_when_synchronize_returns(run: ForkServer) -> None:
    """Fail if synchronize returns before a step is complete.
    JAX computes in the background: the loss of op-by-op steps is ready before the weights."""
    (actual,) = run("jax.synchronize")
    assert actual["pending"] == 0


def test_ranks_average_gradients_and_keep_their_own_statistics(run: ForkServer) -> None:
    """Fail if ranks do not average gradients, or share their batch statistics.
    In one compiled program, JAX would by default use statistics of the global batch."""
    first, second = run("jax.average", ranks=2)
    assert first["settings"]["collectives"] == "gloo"
    assert first["total"] == second["total"] == pytest.approx(0.3, rel=1e-15), "not in float64"
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["statistics"] != second["statistics"], "statistics are those of both batches"
    assert first["gradients"] == second["gradients"]
    assert first["checksum"] == second["checksum"]
    length = norm(first["gradients"])
    for entry in (first, second):
        assert distance(entry["by_operation"], first["gradients"]) < 1e-5 * length
        assert distance(entry["single"], first["gradients"]) > 1e-2 * length
    # the average of two clipped gradients would be shorter than the limit
    assert first["moved"] == pytest.approx(0.01, rel=1e-2)


def test_a_nan_in_the_input_reaches_the_loss(run: ForkServer) -> None:
    """Fail if a NaN in the input does not reach the loss.
    With ``jax.nn.relu``, XLA's default CPU kernels lose it in the last ReLU and average pooling."""
    (actual,) = run("jax.lose_nan")
    assert math.isnan(actual["poisoned"])


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (actual,) = run("jax.run_out_of_memory")
    assert actual == {"allocation": True, "host": True, "device": True, "shapes": False}
