"""Models in half precision, linear layers with matmuls in float8, and the switches of TF32."""

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
def test_all_matmuls_and_arrays_except_batch_normalisation_are_in_half_precision(
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
    """SuperBench's is 1e-8; the gradients of words in no batch are zero, too."""
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


#: Dtypes of the gradients that reach a layer.
BACKWARD = {"fp8": "float8_e5m2", "fp8_e4m3": "float8_e4m3fn"}


def test_float8_computes_what_the_reference_does(
    pytorch_run: ForkServer, references: dict[str, Path], decoder_references: Path
) -> None:
    folders = [references[BERT], decoder_references / "llama_8b"]
    errors = compared(pytorch_run, folders, list(BACKWARD), modes=("train",))
    assert not beyond(errors)
    for _, measured in errors.values():
        for entry in measured:
            if entry["quantity"] in ("outputs", "gradients, total"):
                assert entry["error"] > 0.01, "float8 has errors that no other precision has"


@pytest.mark.parametrize("precision", BACKWARD)
def test_matmuls_of_layers_are_observed_in_float8_in_both_passes(
    pytorch_run: ForkServer, precision: str
) -> None:
    (actual,) = pytorch_run("float8.train", precision=precision)
    # pooler and transform; FP8 does not support the sizes of the heads
    linear = 6 * actual["layers"] + 2
    assert actual["forward"]["float8_e4m3fn"] == linear
    assert actual["forward"] == {"float8_e4m3fn": linear, "bfloat16": 2 * actual["layers"] + 2}
    backward = actual["both"][BACKWARD[precision]] - (precision == "fp8_e4m3") * linear
    assert backward >= linear, "a gradient of each, in its own format"
    assert set(actual["both"]) <= {*precisions.known()[precision].dtypes, "bfloat16"}
    assert actual["outputs"] == ["torch.bfloat16"] * 2


def test_gpt2_has_float8_matmuls_even_beside_a_layer_of_unsuited_size(
    pytorch_run: ForkServer, decoder_references: Path
) -> None:
    """SuperBench converts none of its GPT-2, and no layer after the first unsuitable one."""
    (actual,) = pytorch_run(
        "float8.convert", folder=str(decoder_references / "superbench_gpt2_small")
    )
    # queries, keys and values are one matmul
    assert actual["matmul_dtypes"]["float8_e4m3fn"] == 4 * actual["layers"]
    assert set(actual["matmul_dtypes"]) == {"float8_e4m3fn", "bfloat16"}
    assert actual["kinds"] == ["Linear", "Float8Linear"]


def test_layers_that_were_not_converted_are_a_mismatch(pytorch_run: ForkServer) -> None:
    (actual,) = pytorch_run("float8.convert_nothing")
    assert "matmuls ran in bfloat16" in actual["reason"]


def test_what_cannot_multiply_in_float8_is_unsupported(pytorch_run: ForkServer) -> None:
    (actual,) = pytorch_run("float8.refuse")
    assert "no convolutions in float8" in actual["convolutions"]
    assert "multiples of 16" in actual["sides"]
    assert "only in the linear layers of a model" in actual["product"]


switched = served("pytorch", "jax", "tensorflow", "paddle")


def test_tf32_that_is_set_is_observed_not_believed(switched: ForkServer) -> None:
    (actual,) = switched("tf32.observe")
    assert actual["older"].endswith("the device is a GPU, compute capability 7.5")
    for precision in ("fp32", "tf32"):
        switches, products, reason = actual[precision]
        assert set(switches) == {precision == "tf32"}
        assert list(products) == ["float32"], "a processor rounds nothing to TF32"
        assert (reason is None) == (precision == "fp32")
        assert not reason or reason.startswith(f"tf32, but {products['float32']} of ")


def test_a_processor_has_no_tf32(switched: ForkServer) -> None:
    (actual,) = switched("common.refuse", precision="tf32")
    assert actual["reason"].endswith("the device is a CPU")
