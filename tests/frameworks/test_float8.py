"""Linear layers with float8 matmuls."""

from __future__ import annotations

from pathlib import Path

import pytest
from core import precisions

from .comparing import beyond, compared
from .fork_server import ForkServer, served
from .models import BERT

#: Dtypes of the gradients that reach a layer.
BACKWARD = {"fp8": "float8_e5m2", "fp8_e4m3": "float8_e4m3fn"}

run = served("pytorch")


def test_they_compute_what_the_reference_does(
    run: ForkServer, references: dict[str, Path], decoder_references: Path
) -> None:
    folders = [references[BERT], decoder_references / "llama_8b"]
    errors = compared(run, folders, list(BACKWARD), modes=("train",))
    assert not beyond(errors)
    for _, measured in errors.values():
        for entry in measured:
            if entry["quantity"] in ("outputs", "gradients, total"):
                assert entry["error"] > 0.01, "float8 has errors that no other precision has"


@pytest.mark.parametrize("precision", BACKWARD)
def test_products_of_layers_are_seen_in_float8_in_both_passes(
    run: ForkServer, precision: str
) -> None:
    (actual,) = run("float8.train", precision=precision)
    linear = 6 * actual["layers"] + 2  # pooler and transform; the heads have other sizes
    assert actual["forward"]["float8_e4m3fn"] == linear
    assert actual["forward"] == {"float8_e4m3fn": linear, "bfloat16": 2 * actual["layers"] + 2}
    backward = actual["both"][BACKWARD[precision]] - (precision == "fp8_e4m3") * linear
    assert backward >= linear, "a gradient of each, in its own format"
    assert set(actual["both"]) <= {*precisions.known()[precision].dtypes, "bfloat16"}
    assert actual["outputs"] == ["torch.bfloat16"] * 2


def test_gpt2_has_such_products_and_a_layer_of_another_size_stops_no_other(
    run: ForkServer, decoder_references: Path
) -> None:
    """Fail if GPT-2 has no float8 matmuls, or an unsuitable layer stops others.
    SuperBench converts none of its GPT-2, and no layer after the first unsuitable one."""
    (actual,) = run("float8.convert", folder=str(decoder_references / "superbench_gpt2_small"))
    # queries, keys and values are one matmul
    assert actual["matmul_dtypes"]["float8_e4m3fn"] == 4 * actual["layers"]
    assert set(actual["matmul_dtypes"]) == {"float8_e4m3fn", "bfloat16"}
    assert actual["kinds"] == ["Linear", "Float8Linear"]


def test_layers_that_were_not_converted_are_a_mismatch(run: ForkServer) -> None:
    (actual,) = run("float8.convert_nothing")
    assert "matmuls ran in bfloat16" in actual["reason"]


def test_what_cannot_multiply_in_float8_is_unsupported(run: ForkServer) -> None:
    (actual,) = run("float8.refuse")
    assert "no convolutions in float8" in actual["convolutions"]
    assert "multiples of 16" in actual["sides"]
    assert "only in the linear layers of a model" in actual["product"]


def test_inference_steps_multiply_in_float8(run: ForkServer) -> None:
    """Fail if inference without gradients does not multiply in float8."""
    (actual,) = run("float8.infer")
    assert actual["value"] == pytest.approx(actual["logits"], rel=1e-6)
