"""Attention uses each framework's recommended kernel."""

from __future__ import annotations

import pytest

from .fork_server import ForkServer, served

LAYERS = 2
#: Place of the kernel in the framework's modules.
FUSED = {"pytorch": "torch.nn.functional", "paddle": "paddle.nn.functional"}

run = served(*FUSED)


@pytest.mark.parametrize("run", FUSED, indirect=True)
def test_each_layer_has_the_fused_attention(run: ForkServer) -> None:
    """Fail if a layer uses the fused kernel other than once per forward pass, also with dropout."""
    (actual,) = run("attention.count_calls", functional=FUSED[run.framework], layers=LAYERS)
    models, modes = ("bert_base", "gpt2_small"), ("train", "inference")
    assert actual == {f"{model} {mode}": LAYERS for model in models for mode in modes}
