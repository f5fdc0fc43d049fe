"""BERT of all kinds and ELECTRA: sizes, and what is sampled. ``test_decoder.py`` compares every
framework with the reference."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import compute, electra
from reference.operations import Jumps

from .comparing import beyond
from .fork_server import ForkServer, served
from .models import SEQUENCE, model_config_of, reference_module, trained_parameters
from .planting import PYTORCH, Computation, errors_of
from .transformers import ENCODERS


def encoder(layers: int, hidden: int, inner: int) -> int:
    """Return the parameters: four projections, two more matrices, two normalisations per layer."""
    return layers * (4 * (hidden + 1) * hidden + 2 * hidden * inner + inner + hidden + 4 * hidden)


def embeddings(vocabulary: int, hidden: int, positions: int = 512) -> int:
    """Return the parameters of tokens, positions, 2 segments, and a normalisation."""
    return (vocabulary + positions + 2 + 2) * hidden


def electra_parameters(
    layers: int, hidden: int, own: int, vocabulary: int = 30528, positions: int = 512
) -> int:
    """Return the parameters of NVIDIA's ELECTRA; ``own``: the generator's width."""
    generator = (hidden + 1) * own + encoder(layers, own, 4 * own)
    head = (own + 1) * hidden + 2 * hidden + vocabulary
    discriminator = encoder(layers, hidden, 4 * hidden) + (hidden + 1) * hidden + hidden + 1
    return embeddings(vocabulary, hidden, positions) + generator + head + discriminator


#: Parameters published for BERT, of Hugging Face's BertModel with SuperBench's head, and by hand.
PARAMETERS = {
    "bert_base": 110_106_428,
    "bert_large": 336_226_108,
    "superbench_bert_base": 109_559_140,
    "superbench_bert_large": 335_244_388,
    "electra_base": electra_parameters(12, 768, 256),
    "electra_large": electra_parameters(24, 1024, 384),
    # equal to Hugging Face's BertForQuestionAnswering
    "bert_base_squad": 108_893_186,
    "electra_base_squad": 108_893_186,
    "span_encoder": (96 + 128 + 2 + 2) * 64 + encoder(2, 64, 256) + 65 * 2,
    "topics_electra": electra_parameters(2, 32, 16, 40, 128),
}


def products(model_config: dict[str, Any]) -> dict[str, int]:
    """Return the multiply-adds by the shapes of the matrices and their number of uses."""
    hyper = model_config["hyperparameters"]
    counted = {"per_sample": 0, "per_token": 0, "per_token_pair": 0, "per_prediction": 0}
    for name, parameter in reference_module(model_config["name"]).parameters(model_config).items():
        if len(parameter.shape) == 2 and not name.startswith("embeddings."):
            layer = name.rpartition(".")[0]
            if layer in ("pooler", "classifier", "next_sentence"):
                use = "per_sample"
            else:
                predicts = layer in ("transform", "generator.transform")
                use = "per_prediction" if predicts else "per_token"
            counted[use] += math.prod(parameter.shape)
    widths = hyper["hidden"] + hyper.get("generator", {"hidden": 0})["hidden"]
    counted["per_token_pair"] = 2 * hyper["layers"] * widths
    if "classes" not in hyper and hyper.get("head") != "span":
        counted["per_prediction"] += hyper["vocabulary"] * hyper["hidden"]
    return {use: count for use, count in counted.items() if count}


@pytest.mark.parametrize("model", ENCODERS)
def test_configs_have_the_parameters_and_the_matmuls_of_their_matrices(model: str) -> None:
    model_config = model_config_of(model)
    assert (
        model_config["trainable_parameters"]
        == trained_parameters(model_config)
        == PARAMETERS[model]
    )
    assert model_config["forward_multiply_adds"] == products(model_config)


@pytest.fixture(scope="module")
def batches() -> tuple[dict[str, Any], ...]:
    """Return small weights, a batch, the batch as compared, and the config."""
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


def test_masked_kept_and_truly_sampled_tokens_are_compared(batches: Any) -> None:
    weights, _, decided, hyper = batches
    labels = electra.forward(weights, decided, hyper, True)[2]
    of_masked = np.take_along_axis(labels, decided["masked_positions"], axis=1)
    assert 0 < of_masked.sum() < of_masked.size
    assert labels.sum() == of_masked.sum(), "only masked positions can be replaced"
    masked = decided["mask_draws"] < hyper["masked_percent"]
    assert 0 < masked.sum() < masked.size


def test_noise_is_that_of_gumbel_and_of_no_two_words_alike() -> None:
    """Fail if the noise is not Gumbel's, or correlated between words or consecutive draws.
    Consecutive draws would be the most similar. Bounds allow for chance."""
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
    """Fail if half precision samples other tokens.
    One more or less replaced token would change at least a tenth of the outputs."""
    reference = decoder_references / "electra_base"
    assert not beyond(errors_of(run, reference, PYTORCH, Computation(precision=precision)))
