"""Abilities of this machine's processor that frameworks depend on."""

from __future__ import annotations

from core import precisions
from harness.machine.processor import processor

#: MXNet's own words where its matmuls have no bfloat16.
NO_BFLOAT16 = "MXNet's products on cpu in bfloat16"


def onednn_has_bfloat16() -> bool:
    """Return whether the oneDNN in MXNet's and PaddlePaddle's builds has matmuls in bfloat16 for
    this processor: it has them for AVX-512 alone."""
    return "avx512bw" in processor().get("instruction_sets", ())


def emulates(precision: str) -> bool:
    """Return whether this processor has no instructions for ``precision``."""
    return bool(precisions.emulated(precision, processor().get("instruction_sets", ())))
