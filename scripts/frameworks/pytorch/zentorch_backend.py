"""AMD's backend of ``torch.compile``: whether it can run here, and proof that it took part.

Its optimizations are for inference, with the gradients off (README of amd/ZenDNN-pytorch-plugin).
"""

from __future__ import annotations

import importlib.util
from typing import Any, Callable, Dict

import torch
from harness.adapter import Mismatch, Unsupported
from torch import nn

NAME = "zentorch"


def require(device: torch.device, train: bool) -> None:
    """Raise :class:`Unsupported` where zentorch is not installed or optimizes nothing."""
    if device.type != "cpu":
        raise Unsupported("zentorch is for CPUs alone")
    if train:
        raise Unsupported("zentorch optimizes inference alone")
    if importlib.util.find_spec(NAME) is None:
        raise Unsupported("zentorch is not installed; envs/pytorch-zentorch.yaml has it")
    import zentorch._C

    if not zentorch._C.is_avx512_supported():
        raise Unsupported("zentorch needs a processor with AVX-512")


def compile_module(model: nn.Module, whole: bool) -> None:
    """Compile ``model`` in place, as AMD's README says: weights frozen, shapes static. ``whole``:
    refuse graph breaks."""
    import torch._inductor.config as inductor
    import zentorch  # noqa: F401  (registers the backend)

    inductor.freezing = True
    model.compile(backend=NAME, fullgraph=whole, dynamic=False)


def executed(step: Callable[[], Any]) -> Dict[str, int]:
    """Return how often a step ran each operator of zentorch. Raises :class:`Mismatch` where it ran
    none."""
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu]) as profile:
        step()
    counts = {
        event.key.partition("::")[2]: int(event.count)
        for event in profile.key_averages()
        if event.key.startswith(f"{NAME}::")
    }
    if not counts:
        raise Mismatch("zentorch's backend left no operator of its own in the compiled model")
    return counts
