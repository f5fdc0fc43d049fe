"""Features of this machine's processor that frameworks depend on."""

from __future__ import annotations

from core import precisions
from harness.hardware import processor

#: Start of the reason why MXNet has no bfloat16 matmuls here.
NO_BFLOAT16 = "MXNet's matmuls on cpu in bfloat16"


def onednn_has_bfloat16() -> bool:
    """Return whether oneDNN in MXNet's and PaddlePaddle's builds has bfloat16 matmuls here.
    It has them only for AVX-512."""
    return "avx512bw" in processor().get("instruction_sets", ())


def emulates(precision: str) -> bool:
    """Return whether this processor has no instructions for ``precision``."""
    return bool(precisions.emulated(precision, processor().get("instruction_sets", ())))
