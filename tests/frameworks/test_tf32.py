"""TF32 switches of frameworks, without a GPU: they are set, and being set proves nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from harness.adapter import Rounding
from harness.measuring.loading import load_adapter

from ..conftest import ROOT
from .fork_server import ForkServer, served

run = served("pytorch", "jax", "tensorflow", "paddle")

FRAMEWORKS = sorted(path.parent for path in ROOT.glob("scripts/frameworks/*/framework.json"))
#: Sets PRECISION as on a GPU of the compute capability VERSION, and returns the switches.
SWITCHED = {
    "pytorch": """
torch = adapter._torch
torch.cuda.get_device_capability = lambda device: VERSION
torch.cuda.get_device_name = lambda device: "a GPU"
adapter._devices.set_precision(PRECISION, torch.device("cuda", 0))
flags = torch.backends
switches = [flags.cuda.matmul.allow_tf32, flags.cudnn.allow_tf32]
""",
    "jax": """
from types import SimpleNamespace
devices = adapter._devices
devices.configure(adapter.rank_context, PRECISION)
version = ".".join(map(str, VERSION))
gpu = SimpleNamespace(platform="gpu", compute_capability=version, device_kind="a GPU")
devices.compute_dtype(PRECISION, gpu)
switches = [adapter._jax.config.jax_default_matmul_precision == "tensorfloat32"]
""",
    "tensorflow": """
adapter._devices.capability_and_name = lambda gpu: (VERSION, "a GPU")
adapter._devices.set_tf32(PRECISION == "tf32", object())
switches = [adapter._tf.config.experimental.tensor_float_32_execution_enabled()]
""",
    "paddle": """
cuda, core = adapter._paddle.device.cuda, adapter._paddle.base.core
cuda.get_device_capability, cuda.get_device_name = lambda: VERSION, lambda: "a GPU"
core.set_cudnn_switch(False)
if PRECISION == "tf32":
    adapter._devices.allow_tf32(True)
switches = [core.get_cublas_switch(), core.get_cudnn_switch()]
""",
}
OBSERVED = """
from harness.measuring import checks
from harness.measuring.verification import rounding
adapter = built(small_bert(), mode="inference")

def switched():
    exec(SWITCH, globals())
    return switches

def observed():
    found = rounding.named(adapter.matmul_dtypes(), rounding.observe(adapter))
    return found, raised(Mismatch, lambda: checks.check_matmuls(PRECISION, found))

PRECISION, VERSION = "tf32", (7, 5)
older = raised(Unsupported, switched)
VERSION = (9, 0)
answers = {}
for PRECISION in ("fp32", "tf32"):
    answers[PRECISION] = [switched(), *observed()]
answer(older=older, **answers)
"""


def test_what_is_set_is_observed_not_believed(run: ForkServer) -> None:
    (found,) = run(f"SWITCH = {SWITCHED[run.framework]!r}\n{OBSERVED}")
    assert found["older"].endswith("the device is a GPU, compute capability 7.5")
    for precision in ("fp32", "tf32"):
        switches, products, reason = found[precision]
        assert set(switches) == {precision == "tf32"}
        assert list(products) == ["float32"], "a processor rounds nothing to TF32"
        assert (reason is None) == (precision == "fp32")
        assert not reason or reason.startswith(f"tf32, but {products['float32']} of ")


def test_a_processor_has_none(run: ForkServer) -> None:
    start = "lambda: started(small_bert(), precision='tf32')"
    (found,) = run(f"answer(reason=raised(Unsupported, {start}))")
    assert found["reason"].endswith("the device is a CPU")


@pytest.mark.parametrize("folder", FRAMEWORKS, ids=lambda folder: folder.name)
def test_who_has_tf32_shows_what_it_does(folder: Path) -> None:
    with patch.dict(sys.modules):  # otherwise one framework's adapter would replace all
        adapter = load_adapter(str(folder))
    declared = json.loads((folder / "framework.json").read_text())
    assert issubclass(adapter, Rounding) or "tf32" not in declared["precisions"]
