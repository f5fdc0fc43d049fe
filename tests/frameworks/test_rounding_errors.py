"""Errors that the reference attributes to rounding in half precision, compared with those of
correct code."""

from __future__ import annotations

import json
from pathlib import Path

import autograd
import autograd.numpy as np
import numpy
import pytest
from core import precisions
from harness.kinds.verification import LOSSES, UPDATES, ReferenceFolder
from reference import compute, operations
from reference.rounding import rounded, to_half

from .comparing import beyond
from .fork_server import ForkServers
from .models import BERT, BLOCKS, RESNET, model_config_of
from .planting import ADAPTERS, Computation, errors_of

UNIT = 2.0**-8  # largest relative error of a number with 8 significant bits


def test_numbers_are_rounded_to_the_nearest_of_eight_bits() -> None:
    values = numpy.random.RandomState(0).standard_normal(1000)
    mantissas, exponents = numpy.frexp(values)
    nearest = numpy.ldexp(numpy.round(mantissas * 256), exponents - 8)
    assert (to_half(values) == nearest).all()


def test_matmuls_are_rounded_with_their_gradients_and_only_within_the_context() -> None:
    x, y = numpy.random.RandomState(0).standard_normal((2, 3, 3))

    def summed(x: operations.Array) -> operations.Array:
        return np.sum(operations.matmul(x, y))

    exact = summed(x), autograd.grad(summed)(x)
    with rounded():
        narrow = summed(x), autograd.grad(summed)(x)
    assert summed(x) == exact[0] != narrow[0]
    assert numpy.allclose(narrow[1], exact[1], rtol=10 * UNIT, atol=UNIT)
    assert (narrow[1] == to_half(narrow[1])).all()
    assert (narrow[1] != exact[1]).any()


@pytest.mark.parametrize(("precision", "part"), [("fp32", 0.0), ("amp", 1.0), ("amp_fp16", 1 / 8)])
def test_rounding_is_in_proportion_to_the_precision(
    precision: str, part: float, references: dict[str, Path]
) -> None:
    assert precisions.known()[precision].coarseness == part
    comparison = ReferenceFolder(str(references[BERT]))
    for quantity, norms in comparison.expected["rounding"].items():
        actual = comparison.rounding(quantity, precision)
        assert actual == {name: part * norm for name, norm in norms.items()}
        assert any(norms.values()), quantity


@pytest.mark.parametrize(
    ("framework", "model", "quantities"),
    [
        ("pytorch", BERT, {"two updates, total"}),
        ("pytorch", BLOCKS, {"running statistics"}),
        ("mxnet", RESNET, {"running statistics", "loss", LOSSES}),
    ],
)
def test_right_code_stays_below_a_fifth_of_each_bound_in_mixed_precision(
    fork_servers: ForkServers,
    references: dict[str, Path],
    framework: str,
    model: str,
    quantities: set[str],
) -> None:
    run, folder = fork_servers(framework), references[model]
    errors = errors_of(run, folder, ADAPTERS / framework, Computation(precision="amp"))
    bounds = precisions.known()["amp"].bounds
    assert not beyond(errors, {name: bound / 5 for name, bound in bounds.items()})
    (actual,) = errors.values()
    explained = {entry["quantity"] for entry in actual[1] if entry.get("rounding")}
    assert explained >= {"outputs", "gradients", "first update", *quantities}


def test_rounding_explains_nothing_of_models_that_are_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if the reference of a large model takes the memory of its rounding."""
    monkeypatch.setattr(compute, "MOST_ROUNDED", 0)
    compute.write(compute.reduced(model_config_of("gpt2_small")), 8, 0, tmp_path / "reference")
    actual = json.loads((tmp_path / "reference" / "expected.json").read_text())["rounding"]
    assert set(actual) == {"outputs", LOSSES, "gradients", *UPDATES}
    assert not any(error for errors in actual.values() for error in errors.values())
    with numpy.load(tmp_path / "reference" / "outputs.npz") as outputs:
        assert actual["outputs"].keys() == set(outputs.files)
