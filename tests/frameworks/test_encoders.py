"""Words that ELECTRA samples in the reference: no rounding decides them, and each is compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import compute, electra
from reference.operations import Jumps

from .comparing import beyond, compared_by_rank
from .fork_server import ForkServer, served
from .models import SEQUENCE, model_config_of


@pytest.fixture(scope="module")
def batches() -> tuple[dict[str, Any], ...]:
    model_config = compute.verification_model_config(
        compute.reduced(model_config_of("electra_base")), with_dropout=False
    )
    weights = compute.draw(electra.parameters(model_config), 0)
    batch = compute.make_batch(model_config["inputs"], 4, SEQUENCE, 0, 0)
    hyper = model_config["hyperparameters"]
    return weights, batch, electra.decided(weights, batch, hyper), hyper


def test_no_rounding_decides_what_is_sampled(batches: Any) -> None:
    weights, batch, decided, hyper = batches
    Jumps.nearest = np.inf
    electra.forward(weights, batch, hyper, True)
    assert Jumps.nearest < 0.5
    Jumps.nearest = np.inf
    electra.forward(weights, decided, hyper, True)
    assert Jumps.nearest > 0.9 * electra.LEAD


def test_noise_is_that_of_gumbel_and_of_no_two_words_alike() -> None:
    """Consecutive draws would be the most similar. Bounds allow for chance."""
    words = 50
    actual = electra.noise(np.arange(40_000), words)
    count = actual.size
    assert actual.mean() == pytest.approx(np.euler_gamma, abs=5 * 1.29 / count**0.5)
    assert actual.std() == pytest.approx(np.pi / 6**0.5, rel=0.01)
    first = np.bincount(actual.argmax(axis=-1), minlength=words)
    expected = len(actual) / words
    chi = ((first - expected) ** 2 / expected).sum()
    assert chi < 49 + 5 * (2 * 49) ** 0.5, "a word is preferred"
    levels = np.exp(-np.exp(-actual)) - 0.5  # uniform
    for entry, other in ((levels[:, :-1], levels[:, 1:]), (levels[:-1], levels[1:])):
        assert abs((entry * other).mean() * 12) < 5 / count**0.5


run = served("pytorch")


@pytest.mark.parametrize("precision", ["amp", "bf16", "fp16"])
def test_a_half_precision_samples_the_same(
    run: ForkServer, decoder_references: Path, precision: str
) -> None:
    """One more or less replaced token would change at least a tenth of the outputs."""
    reference = decoder_references / "electra_base"
    assert not beyond(compared_by_rank(run, reference, precision=precision))
