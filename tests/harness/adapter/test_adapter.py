"""Base classes of adapters, with a framework of numpy alone."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core import gpus
from harness.adapter import (
    CONVOLUTION_OIHW,
    DENSE_CHWO,
    DENSE_OI,
    Case,
    Mismatch,
    Numerics,
    RankContext,
    Unsupported,
    Variable,
    no_device,
    takes_gpu,
)
from harness.measuring import checks

CONTEXT = RankContext(0, 3, ["h:1"], "cuda", 1, 0)

#: Shape of an array in a framework, and its axis permutation.
OWN: dict[str, Any] = {
    "convolution": ((4, 3, 2, 1), {"axes": CONVOLUTION_OIHW}),
    "dense": ((5, 4), {"axes": DENSE_OI}),
    "rows": ((24, 5), {"axes": DENSE_CHWO, "unfolded": (2, 3, 4, 5)}),
    "columns": ((5, 24), {"axes": CONVOLUTION_OIHW, "unfolded": (5, 2, 3, 4)}),
    "groups": ((2, 4, 3, 1, 1), {"axes": CONVOLUTION_OIHW, "merged": (8, 3, 1, 1)}),
    "mean": ((5,), {"trainable": False}),
}


def permuted(name: str, own: Any) -> Any:
    """Return an array of a framework in the layout that all frameworks share."""
    if name == "rows":  # a dense layer after images that were flattened channels first
        return own.reshape(2, 3, 4, 5).transpose(1, 2, 0, 3).reshape(24, 5)
    if name == "columns":
        return own.reshape(5, 2, 3, 4).transpose(2, 3, 1, 0).reshape(24, 5)
    if name == "groups":
        return own.reshape(8, 3, 1, 1).transpose(2, 3, 1, 0)
    return own.transpose(2, 3, 1, 0) if name == "convolution" else own.T


class Numpy(Numerics):
    """Adapter with an array in each layout, and a loss scale of 4."""

    def __init__(self) -> None:
        super().__init__(Case("numpy", "m", "train", 1, 1, 1, "fp32", "none", None), {}, CONTEXT)
        self.arrays = {name: np.zeros(shape, np.float32) for name, (shape, _) in OWN.items()}

    def start(self) -> None: ...
    def build(self, batch: dict[str, Any]) -> None: ...
    def step(self) -> None: ...
    def synchronize(self) -> None: ...
    def settings(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, Variable]:
        return {name: Variable(self.arrays[name], **given) for name, (_, given) in OWN.items()}

    def to_numpy(self, tensor: Any) -> Any:
        return tensor

    def assign(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays

    def raw_gradients(self) -> dict[str, Any]:
        return {name: 4 * array for name, array in self.arrays.items() if name != "mean"}

    def loss_scale(self) -> float:
        return 4.0

    def logits(self) -> list[Any]:
        return []


def test_weights_come_back_as_they_were_loaded() -> None:
    own = {n: np.random.RandomState(1).rand(*s).astype(np.float32) for n, (s, _) in OWN.items()}
    shared = {name: permuted(name, array) for name, array in own.items()}
    adapter = Numpy()
    adapter.load_weights(shared)
    assert all(np.array_equal(adapter.arrays[name], array) for name, array in own.items())
    trained = own.keys() - {"mean"}
    for batch in (adapter.weights(), adapter.gradients()):
        assert set(batch) == trained, "running statistics are not trained"
        assert all(np.array_equal(array, shared[name]) for name, array in batch.items())
        assert all(array.dtype == np.float32 for array in batch.values())
    assert adapter.statistics().keys() == {"mean"}
    assert adapter.weights_checksum() == pytest.approx(sum(own[name].sum() for name in trained))
    assert adapter.trainable_parameters() == sum(own[name].size for name in trained)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"extra": np.zeros(1)}, KeyError, "the model has no .'extra'."),
        ({"dense": np.zeros((5, 4))}, ValueError, r"dense is \(5, 4\), not \(4, 5\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    zeros = {name: permuted(name, np.zeros(shape)) for name, (shape, _) in OWN.items()}
    with pytest.raises(error, match=message):
        Numpy().load_weights({**zeros, **change})


def test_a_device_that_a_framework_does_not_see_is_a_fault_of_the_machine() -> None:
    assert takes_gpu(CONTEXT, "Numpy", True, lambda: 4)
    with pytest.raises(Mismatch, match="Numpy sees 3 CUDA devices, too few for local rank 3"):
        takes_gpu(CONTEXT, "Numpy", True, lambda: 3)


DRIVER = """
#include <string.h>
int cuInit(int flags) { return STATUS; }
int cuGetErrorString(int status, const char **text) { *text = "WORDS"; return 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
"""


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (803, "cuInit: system has unsupported display driver / cuda driver combination"),
        (0, "the driver supports CUDA 12.4"),
    ],
)
def test_a_gpu_that_no_framework_sees_is_explained_by_the_driver(
    status: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = str(tmp_path / "driver.so")
    text = "system has unsupported display driver / cuda driver combination"
    code = DRIVER.replace("STATUS", str(status)).replace("WORDS", text)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=code, text=True, check=True)
    monkeypatch.setattr(gpus, "CUDA", library)
    # A driver that works but is too old is for the framework to support; another fault is not.
    fault = Unsupported if status == 0 else Mismatch
    with pytest.raises(fault, match=f"sees 0 CUDA devices.*: {re.escape(reason)}$"):
        takes_gpu(CONTEXT, "Numpy", True, lambda: 0)


def test_a_host_name_that_does_not_resolve_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "nowhere.invalid")
    error = no_device("Unable to initialize backend 'cpu': rv == 0. -3 vs 0")
    assert isinstance(error, Mismatch)
    assert "host name nowhere.invalid: does not resolve" in str(error)
    assert "allowed: a line '127.0.1.1 nowhere.invalid' in /etc/hosts" in str(error)


@pytest.mark.parametrize(
    ("quoted", "status"),
    [
        ("no kernel for bfloat16", "unsupported"),
        ("RuntimeError: [enforce fail] DefaultCPUAllocator: out of memory", "oom"),
        ("folder: no file can be written there: No space left on device", "failed"),
    ],
)
def test_a_fault_of_the_machine_is_no_property_of_a_framework(quoted: str, status: str) -> None:
    assert checks.describe(Unsupported(quoted), None)["status"] == status
