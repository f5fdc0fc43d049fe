"""LSTM in each framework's own layer, compared with the reference."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from reference import superbench_lstm

from ..conftest import ROOT
from .comparing import beyond
from .fork_server import ForkServer, served
from .models import LSTM, model_config_of, trained_parameters

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob(f"scripts/frameworks/*/models/{LSTM}.py")
)


run = served(*FRAMEWORKS)


@pytest.mark.parametrize(
    ("precision", "compiled"), [("fp32", False), ("fp32", True), ("amp", False)]
)
def test_it_computes_what_the_reference_does_or_says_why_not(
    run: ForkServer, references: dict[str, Path], precision: str, compiled: bool
) -> None:
    if run.framework == "jax" and precision == "fp32" and not compiled:
        pytest.skip("operation by operation, JAX compiles each for each shape")
    declared = ROOT / "scripts/frameworks" / run.framework / "framework.json"
    compiler = json.loads(declared.read_text())["native_compiler"] if compiled else "none"
    if compiler is None:
        pytest.skip("it has no compiler")
    if run.framework == "jax":
        compiler = "jit"
    folder = str(references[LSTM])
    (actual,) = run("lstm.compare_modes", folder=folder, precision=precision, compiler=compiler)
    assert not actual["refused"] or precision == "amp" or compiled, actual["refused"]
    assert all(len(words.split()) >= 4 for words in actual["refused"].values())
    assert len(actual["refused"]) + len(actual["errors"]) == 2
    assert not beyond({mode: (precision, errors) for mode, errors in actual["errors"].items()})


def test_the_config_has_the_parameters_of_superbench_and_the_matmuls_of_its_matrices() -> None:
    """Fail if the config's parameters differ from SuperBench's two bias vectors per layer.
    With one bias vector there would be 64,098,404."""
    model_config = model_config_of(LSTM)
    assert model_config["trainable_parameters"] == trained_parameters(model_config) == 64_131_172
    drawn = superbench_lstm.parameters(model_config)
    sizes = {name: math.prod(array.shape) for name, array in drawn.items() if len(array.shape) == 2}
    last = sizes.pop("classifier.weight")
    assert model_config["forward_multiply_adds"] == {
        "per_sample": last,
        "per_token": sum(sizes.values()),
    }
