"""Models in half precision."""

from __future__ import annotations

from pathlib import Path

import pytest
from core import precisions

from .comparing import beyond, compared
from .fork_server import ForkServer, served
from .models import BERT, BLOCKS, EMBEDDING
from .transformers import COMPARED

HALVES = {"bf16": "bfloat16", "fp16": "float16"}

run = served("jax", "pytorch")
pytorch_run = served("pytorch")
jax_run = served("jax")
mixed = served("pytorch", "tensorflow")


def test_they_compute_what_the_reference_does(
    run: ForkServer, references: dict[str, Path], decoder_references: Path
) -> None:
    if run.framework == "pytorch":
        folders = [references[BLOCKS], references[BERT], decoder_references / COMPARED[0]]
        errors = compared(run, folders, list(HALVES), modes=("train",))
    else:  # emulation in XLA takes minutes
        errors = compared(run, [decoder_references / COMPARED[0]], ["bf16"], modes=("train",))
    assert not beyond(errors)
    quantities = {entry["quantity"] for _, measured in errors.values() for entry in measured}
    assert quantities >= {"outputs", "loss", "gradients"}
    assert not quantities & {"first update", "losses"}, "bounds that no precision can hold"


def test_mixed_precision_in_a_dtype_by_name_computes_what_the_reference_does(
    mixed: ForkServer, references: dict[str, Path]
) -> None:
    named = ["amp_bf16", "amp_fp16"]
    assert not beyond(compared(mixed, [references[EMBEDDING]], named, modes=("train",)))


@pytest.mark.parametrize("precision", HALVES)
def test_all_products_and_arrays_but_those_of_batch_normalisation_are_in_it(
    pytorch_run: ForkServer, precision: str
) -> None:
    (actual,) = pytorch_run("half.train", precision=precision)
    half = HALVES[precision]
    assert actual["matmul_dtypes"] == [half]
    assert actual["other"] == [f"torch.{half}"]
    assert actual["norm"] == ["torch.float32"], "running statistics lose what they add up"
    assert f"torch.{half}" in actual["moments"]
    assert not actual["scaler"], "gradients in float16 cannot be scaled back"
    assert precisions.known()[precision].dtypes == (half,)


def test_an_epsilon_below_what_float16_resolves_makes_no_weight_a_nan(
    pytorch_run: ForkServer, decoder_references: Path
) -> None:
    """Fail if an epsilon that float16 rounds to zero makes a weight NaN.
    SuperBench's is 1e-8; the gradients of words in no batch are zero, too."""
    (actual,) = pytorch_run(
        "half.train_small_epsilon", folder=str(decoder_references / "superbench_gpt2_small")
    )
    assert actual["finite"]
    assert 0 < actual["loss"] < 100


def test_a_model_that_was_not_narrowed_is_a_mismatch(pytorch_run: ForkServer) -> None:
    (actual,) = pytorch_run("half.narrow_nothing")
    assert "not torch.bfloat16" in str(actual["reason"])


@pytest.mark.parametrize("precision", HALVES)
def test_jax_refuses_what_xla_would_widen(jax_run: ForkServer, precision: str) -> None:
    (actual,) = jax_run("common.refuse", compiler="jit", precision=precision)
    assert f"{precision} would have no effect" in str(actual["reason"])
    assert HALVES[precision] in str(actual["reason"])
