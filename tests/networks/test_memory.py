"""Memory of the float64 reference.
A transformer layer keeps only its input for the backward pass, and no head its attention weights.
"""

from __future__ import annotations

import tracemalloc

import autograd
import numpy as np
import pytest
from reference import compute, transformers

from ..frameworks.models import small

LENGTH = 64


def peak_of_gradients(layers: int) -> int:
    """Return the peak bytes of differentiating a model of ``layers`` layers."""
    model_config = small("gpt2_small", layers=layers, dropout=0.0)
    model, hyper = compute.module_of(model_config), model_config["hyperparameters"]
    weights = compute.draw(model.parameters(model_config), 0)
    batch = compute.make_batch(model_config["inputs"], 2, LENGTH, 0, 0)

    def loss(some: compute.Arrays) -> object:
        return model.loss(model.forward({**some}, batch, hyper, True), batch, hyper)

    exact = {name: array.astype(np.float64) for name, array in weights.items()}
    tracemalloc.start()
    autograd.value_and_grad(loss)(exact)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def growth() -> float:
    """Return the number of (batch, tokens, hidden) arrays that another layer adds to the peak."""
    return (peak_of_gradients(6) - peak_of_gradients(2)) / 4 / (2 * LENGTH * 32 * 8)


def test_a_layer_leaves_little_for_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    computed_again = growth()
    monkeypatch.setattr(transformers, "head_again", transformers.attention_head)
    monkeypatch.setattr(transformers, "layer_again", transformers.one_layer)
    all_kept = growth()
    assert computed_again < 6 < 30 < all_kept, f"{computed_again:.1f} of {all_kept:.1f} arrays"
