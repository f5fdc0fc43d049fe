"""TF32 and similar modes change no dtype: whether they are on shows in results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch, RankContext, Rounding, Unsupported, require_tf32
from harness.measuring import checks, rounding

from ..recorder import Recorder

Round = Callable[[Any], Any]


def keeping(bits: int) -> Round:
    """Return a function that rounds float32 to ``bits`` significant bits, as tensor cores do."""

    def rounded(array: Any) -> Any:
        mantissa, exponent = np.frexp(array)
        return np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent).astype(np.float32)

    return rounded


def half(array: Any) -> Any:
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


class Multiplying(Recorder, Rounding):
    """Framework whose float32 matmuls and convolutions first round their operands."""

    def matmul_dtypes(self) -> dict[str, int]:
        return {"float32": 1}

    def __init__(self, matrix: Round, convolution: Round, precision: str = "fp32") -> None:
        super().__init__()
        self.ways = {2: matrix, 4: convolution}
        self.case = self.case._replace(precision=precision)
        self.rank_context = RankContext(0, 0, ["h:1"], "cuda", 1, 0)

    def matmul_result(self, left: Any, right: Any) -> Any:
        rounded = self.ways[left.ndim]
        with np.errstate(invalid="ignore"):
            return rounded(left) @ rounded(right.reshape(right.shape[-2:]))


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (keeping(22), {"float32": 2, "bfloat16": 1}),
        (keeping(11), {"tf32": 2, "bfloat16": 1}),
        (keeping(8), {"bfloat16": 3}),
        (keeping(16), {"float32 with 16 significant bits": 2, "bfloat16": 1}),
        (half, {"float32 with 1 significant bits": 2, "bfloat16": 1}),
    ],
)
def test_float32_matmuls_are_named_by_their_observed_precision(
    way: Round, expected: dict[str, int]
) -> None:
    adapter = Multiplying(way, way)
    actual = rounding.named({"float32": 2, "bfloat16": 1}, rounding.observe(adapter))
    assert actual == expected


@pytest.mark.parametrize(
    ("precision", "matrix", "convolution", "reason"),
    [
        ("fp32", 24, 24, ""),
        ("fp32", 24, 11, "fp32, but 2 of 2 matmuls ran in float32 or tf32"),
        ("tf32", 11, 11, ""),
        ("tf32", 24, 24, "tf32, but 2 of 2 matmuls ran in float32"),
    ],
)
def test_a_switch_without_effect_is_a_mismatch(
    precision: str, matrix: int, convolution: int, reason: str
) -> None:
    adapter = Multiplying(keeping(matrix), keeping(convolution), precision)
    actual = rounding.named({"float32": 2}, rounding.observe(adapter))
    if not reason:
        assert checks.check_matmuls(precision, actual) == actual
        return
    with pytest.raises(Mismatch, match=f"^{reason}$"):
        checks.check_matmuls(precision, actual)


@pytest.mark.parametrize(
    ("capability", "device", "reason"),
    [
        ((8, 0), "A100", ""),
        ((7, 5), "T4", "later; the device is T4, compute capability 7.5"),
        (None, "a CPU", "TF32 is in NVIDIA's GPUs of compute capability 8.0 and later; "),
    ],
)
def test_a_device_without_tf32_is_named(capability: Any, device: str, reason: str) -> None:
    if not reason:
        require_tf32(capability, device)
        return
    with pytest.raises(Unsupported, match=reason):
        require_tf32(capability, device)
