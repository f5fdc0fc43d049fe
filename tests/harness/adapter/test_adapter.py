"""Base classes of adapters, with a framework of numpy alone."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.adapter import (
    CONVOLUTION_OIHW,
    DENSE_CHWO,
    Mismatch,
    Unsupported,
    Variable,
    cuda_driver,
    no_device,
    require_visible,
)
from harness.measuring import failure

from ..numpy_adapter import SHAPES, Numpy


def shared() -> dict[str, Any]:
    """Return distinct values, in the layout that all frameworks share."""
    shapes = {"conv": (2, 1, 3, 4), "dense": (4, 5), "bias": (5,), "mean": (5,)}
    return {
        name: np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        for name, shape in shapes.items()
    }


def test_weights_come_back_as_they_were_loaded() -> None:
    adapter, weights = Numpy(), shared()
    adapter.load_weights(weights)
    assert {name: array.shape for name, array in adapter.arrays.items()} == SHAPES
    assert adapter.arrays["conv"][3, 1, 0, 0] == weights["conv"][0, 0, 1, 3]
    for batch in (adapter.weights(), adapter.gradients()):
        assert set(batch) == {"conv", "dense", "bias"}, "running statistics are not trained"
        assert all(np.array_equal(array, weights[name]) for name, array in batch.items())
        assert all(array.dtype == np.float32 for array in batch.values())
    trained = [weights[name] for name in ("conv", "dense", "bias")]
    assert adapter.weights_checksum() == sum(array.sum() for array in trained)
    assert adapter.trainable_parameters() == sum(array.size for array in trained)


CHANNELS, HEIGHT, WIDTH, FEATURES = 2, 3, 4, 5


class Flattening(Numpy):
    """Adapter of two dense layers after images that were flattened channels first."""

    def state(self) -> dict[str, Variable]:
        image = (CHANNELS, HEIGHT, WIDTH)
        values = CHANNELS * HEIGHT * WIDTH
        rows = np.zeros((values, FEATURES)), DENSE_CHWO, True, (*image, FEATURES)
        columns = np.zeros((FEATURES, values)), CONVOLUTION_OIHW, True, (FEATURES, *image)
        return {"rows": Variable(*rows), "columns": Variable(*columns)}


def test_a_dense_layer_behind_images_has_their_channels_last_in_the_shared_layout() -> None:
    adapter = Flattening()
    image = np.random.RandomState(0).randn(HEIGHT, WIDTH, CHANNELS)
    weights = np.random.RandomState(1).randn(image.size, FEATURES).astype(np.float32)
    adapter.load_weights({"rows": weights, "columns": weights})
    own = image.transpose(2, 0, 1).ravel()
    np.testing.assert_allclose(own @ adapter.arrays["rows"], image.ravel() @ weights)
    np.testing.assert_allclose(adapter.arrays["columns"] @ own, image.ravel() @ weights)
    assert all(np.array_equal(array, weights) for array in adapter.gradients().values())
    with pytest.raises(ValueError, match=r"5 outputs .*\(5, 24\)"):
        adapter.load_weights({"rows": weights, "columns": weights.T})


class Recurrent(Numpy):
    """Adapter of a matrix with gates in the order output, input, forget, cell."""

    def state(self) -> dict[str, Variable]:
        return {"matrix": Variable(np.zeros((3, 8)), gates=(1, 2, 3, 0))}


def test_gates_have_one_order_in_the_shared_layout() -> None:
    adapter = Recurrent()
    weights = np.arange(24, dtype=np.float32).reshape(3, 8)
    adapter.load_weights({"matrix": weights})
    assert adapter.arrays["matrix"][0].tolist() == [6, 7, 0, 1, 2, 3, 4, 5]
    assert np.array_equal(adapter.gradients()["matrix"], weights)


class Grouped(Numpy):
    """Adapter of a kernel whose two groups have an axis of their own."""

    def state(self) -> dict[str, Variable]:
        kernel = np.zeros((2, 4, 3, 1, 1))
        return {"kernel": Variable(kernel, CONVOLUTION_OIHW, merged=(8, 3, 1, 1))}


def test_an_axis_of_groups_is_merged_in_the_shared_layout() -> None:
    adapter = Grouped()
    weights = np.arange(24, dtype=np.float32).reshape(1, 1, 3, 8)
    adapter.load_weights({"kernel": weights})
    assert adapter.arrays["kernel"].shape == (2, 4, 3, 1, 1)
    assert adapter.arrays["kernel"][1, 0].ravel().tolist() == [4, 12, 20]
    assert np.array_equal(adapter.gradients()["kernel"], weights)
    with pytest.raises(ValueError, match=r"\(3, 8, 1, 1\)"):
        adapter.load_weights({"kernel": weights.swapaxes(-1, -2)})


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
    with pytest.raises(error, match=message):
        Numpy().load_weights({**shared(), **change})


class FullError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA Out Of Memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling .."), True),
        (OSError("there is no room here"), True),
        (FullError("sorry"), True),
        (ValueError("shapes (2, 3) and (2, 3) not aligned"), False),
    ],
)
def test_memory_that_ran_out_is_distinguished_from_other_errors(
    error: Exception, memory: bool
) -> None:
    assert Numpy().out_of_memory(error) is memory


def test_a_device_that_a_framework_does_not_see_is_a_fault_of_the_machine() -> None:
    rank_context = Numpy(accelerator="cuda").rank_context
    require_visible("Numpy", 4, rank_context)
    with pytest.raises(Mismatch, match="Numpy sees 3 CUDA devices, too few for local rank 3"):
        require_visible("Numpy", 3, rank_context)


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
        (None, "absent.so: cannot open shared object file: No such file or directory"),
    ],
)
def test_a_gpu_that_no_framework_sees_is_explained_by_the_driver(
    status: int | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "absent.so"
    if status is not None:
        library = str(tmp_path / "driver.so")
        text = "system has unsupported display driver / cuda driver combination"
        code = DRIVER.replace("STATUS", str(status)).replace("WORDS", text)
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
        subprocess.run(command, input=code, text=True, check=True)
    monkeypatch.setattr(cuda_driver, "LIBRARY", library)
    rank_context = Numpy(accelerator="cuda").rank_context
    # A driver that works but is too old is for the framework to support; another fault is not.
    fault = Unsupported if status == 0 else Mismatch
    with pytest.raises(fault, match=f"sees 0 CUDA devices.*: {re.escape(reason)}$"):
        require_visible("Numpy", 0, rank_context)


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
        ("std::bad_alloc", "oom"),
        ("folder: no file can be written there: No space left on device", "failed"),
        ("the C compiler 'cc' does not compile stream: /tmp: Permission denied", "failed"),
    ],
)
def test_a_fault_of_the_machine_is_no_property_of_a_framework(quoted: str, status: str) -> None:
    assert failure.describe(Unsupported(quoted), None)["status"] == status
