"""Memory of the float64 reference.
A transformer layer keeps only its input for the backward pass, and no head its attention weights.
"""

from __future__ import annotations

import csv
import tracemalloc
from functools import cache

import autograd
import networks
import numpy as np
import pytest
from reference import compute, transformers

from ..conftest import ROOT
from ..frameworks.models import definition_of, small, trained_parameters
from ..frameworks.sizes import compared_at, config_at

#: Peaks kept by `benchmarks/reference_memory.py`, and their bound.
KEPT, GOAL = ROOT / "tests/data/reference_memory.csv", 8.0
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


@cache
def extent(model: str, tokens: int | None) -> tuple[int, ...]:
    """Return the quantities that determine a reference's peak memory.
    They are the parameters and, of a convolutional network, the layers' outputs; else tokens, width
    and vocabulary."""
    model_config = config_at(model)
    hyper, parameters = model_config["hyperparameters"], trained_parameters(model_config)
    if definition_of(model) == "cnn":
        layers = networks.describe(model_config).layers
        shapes = [layer.shape for layer in layers]
        return parameters, sum(shape.height * shape.width * shape.channels for shape in shapes)
    return parameters, tokens or 0, hyper["hidden"], hyper.get("vocabulary", 0)


def test_every_reference_of_a_verification_fits_into_memory() -> None:
    """Fail if a reference was not measured, and is not smaller than a measured one of its
    definition."""
    with KEPT.open() as file:
        kept = {
            (row["model"], int(row["tokens"]) if row["tokens"] else None): row
            for row in csv.DictReader(file)
        }
    for (model, tokens), row in kept.items():
        assert extent(model, tokens)[0] == int(row["parameters"]), f"measure {model} again"
        assert float(row["gib"]) < GOAL, model
    for model, tokens in compared_at():
        own, definition = extent(model, tokens), definition_of(model)
        larger = [
            size
            for size in kept
            if definition_of(size[0]) == definition
            and all(a >= b for a, b in zip(extent(*size), own, strict=True))
        ]
        assert larger, f"nothing as large as {model} with {tokens or 'no'} tokens was measured"
