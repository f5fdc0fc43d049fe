"""LSTM in each framework's own layer, compared with the reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..conftest import ROOT
from .comparing import beyond
from .fork_server import ForkServer, served
from .models import LSTM

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
