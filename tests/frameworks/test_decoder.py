"""Language models, and LSTMs in each framework's own layer, agree with the reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..conftest import ROOT
from .comparing import beyond, compared
from .fork_server import ForkServer, served
from .models import LSTM
from .processors import NO_BFLOAT16, emulates, onednn_has_bfloat16
from .transformers import FULL, THOROUGH, compared_in

FRAMEWORKS = sorted(
    path.parents[1].name for path in ROOT.glob("scripts/frameworks/*/models/decoder.py")
)

#: Messages of frameworks whose mixed precision lacks something on a CPU.
UNSUPPORTED = {
    ("mindspore", "amp"): "Select CPU operator[MatMul] fail! Unsupported data type!",
    ("oneflow", "amp"): "CPU autocast is not supported",
    ("paddle", "amp"): "can only be enabled on CUDAPlace",
    ("tensorflow1", "amp"): "GPU",
    **({} if onednn_has_bfloat16() else {("mxnet", "amp"): NO_BFLOAT16}),
}

#: Model for tests of mixed precision: it covers all parts that BERT lacks.
IN_AMP = ["llama_8b"]

run = served(*FRAMEWORKS, before=["comparing.leave_out_steps"])


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_every_kind_computes_what_the_reference_does(
    run: ForkServer, decoder_references: Path, precision: str
) -> None:
    models = compared_in(run.framework) if precision == "fp32" else IN_AMP
    assert set(IN_AMP) <= set(models)
    every = run.framework == FULL
    brief = [] if every else [decoder_references / m for m in models if m not in THOROUGH]
    folders = [decoder_references / model for model in models]
    if (run.framework, precision) in UNSUPPORTED:
        model_config = json.loads((folders[0] / "model_config.json").read_text())
        (actual,) = run("common.refuse", model_config=model_config, build=True, precision="amp")
        assert UNSUPPORTED[run.framework, precision] in actual["reason"]
        return
    if run.framework == "tensorflow" and precision == "amp" and emulates("amp"):
        pytest.skip("where bfloat16 is emulated, TensorFlow's first update is 0.106 off, bound 0.1")
    assert not beyond(compared(run, folders, [precision], training_only=brief))


lstms = served(
    *sorted(path.parents[1].name for path in ROOT.glob(f"scripts/frameworks/*/models/{LSTM}.py"))
)


@pytest.mark.parametrize(
    ("precision", "compiled"), [("fp32", False), ("fp32", True), ("amp", False)]
)
def test_an_lstm_computes_what_the_reference_does_or_says_why_not(
    lstms: ForkServer, references: dict[str, Path], precision: str, compiled: bool
) -> None:
    if lstms.framework == "jax" and precision == "fp32" and not compiled:
        pytest.skip("operation by operation, JAX compiles each for each shape")
    declared = ROOT / "scripts/frameworks" / lstms.framework / "framework.json"
    compiler = json.loads(declared.read_text())["native_compiler"] if compiled else "none"
    if compiler is None:
        pytest.skip("it has no compiler")
    if lstms.framework == "jax":
        compiler = "jit"
    folder = str(references[LSTM])
    (actual,) = lstms(
        "comparing.compare_modes", folder=folder, precision=precision, compiler=compiler
    )
    assert not actual["refused"] or precision == "amp" or compiled, actual["refused"]
    assert all(len(words.split()) >= 4 for words in actual["refused"].values())
    assert len(actual["refused"]) + len(actual["errors"]) == 2
    assert not beyond({mode: (precision, errors) for mode, errors in actual["errors"].items()})
