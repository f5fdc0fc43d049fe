"""ELECTRA's pre-training in float64 (Clark et al. 2020, arXiv:2003.10555), in NVIDIA's shape: a
narrow generator, as deep as the discriminator, which detects the tokens that the generator
replaced. The generator's head sees the masked positions alone, as in the authors' code. Both see
the same embeddings, the generator through a projection to its width.

Nothing is random: which masked positions keep their token and what is sampled from the generator
follow from draws in the batch (``mask_draws``, ``sampling_draws``). The sampled token is the one
with the largest sum of logit and Gumbel noise, as in NVIDIA's code."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np
import numpy
from networks import transformers
from networks.transformers import DRAWS, MASK, MIXER, WORD

from reference.bert import FACTORS, embedded, encoded, vocabulary_logits
from reference.operations import Array, Jumps, cross_entropy, dense, gelu
from reference.transformers import Dropout, drawn, dropping
from reference.weights import Arrays, Drawn, Hyper

#: Smallest lead of the sampled token over all others: larger than rounding in half precision,
#: smaller than differences of logits.
LEAD = 1.0


def parameters(model_config: dict[str, Any]) -> dict[str, Drawn]:
    """Return every parameter, and how its value for the comparison is drawn."""
    hyper = model_config["hyperparameters"]
    weights = drawn(transformers.electra(hyper), FACTORS)
    # logits with a deviation of about 2: otherwise noise alone would decide which token is sampled
    large = 2.0 / (0.05 * hyper["hidden"] ** 0.5)
    norm = {"generator.transform_norm.weight": Drawn((hyper["hidden"],), 0.1 * large, large)}
    return {**weights, **norm}


def noise(draws: Array, vocabulary: int) -> Array:
    """Return the Gumbel noise of each word (batch, predictions, vocabulary), from a 31-bit draw for
    each prediction (batch, predictions): a draw for each word would take 2.4 MB a sequence. The
    draw and the word are mixed to 32 bits, of which the upper 20 are a uniform number."""
    mixed = draws[..., None] ^ (numpy.arange(vocabulary) * WORD & MASK)
    for _ in range(2):
        mixed = (mixed ^ mixed >> 16) * MIXER & MASK
    uniform = (mixed ^ mixed >> 16) >> 12
    return -numpy.log(-numpy.log((uniform + 0.5) / DRAWS))


def replaced(tokens: Array, positions: Array, new: Array) -> Array:
    """Return ``tokens`` (batch, sequence) with ``new`` ones (batch, predictions) at
    ``positions``."""
    changed = tokens.copy()
    numpy.put_along_axis(changed, positions, new, axis=1)
    return changed


def originals(batch: Arrays) -> Array:
    """Return the tokens at the masked positions, (batch, predictions)."""
    return numpy.take_along_axis(batch["token_ids"], batch["masked_positions"], axis=1)


def forward(
    weights: Arrays, batch: Arrays, hyper: Hyper, training: bool, dropout: Dropout | None = None
) -> list[Array]:
    """Return logits that a token is replaced (batch, sequence), the generator's of the masked
    positions (batch, predictions, vocabulary), and 1 where a token is replaced, else 0 (batch,
    sequence). ``dropout``: None for no dropout."""
    drop = dropping(training, dropout, hyper)
    tokens, positions = batch["token_ids"], batch["masked_positions"]
    masked = batch["mask_draws"] < hyper["masked_percent"]
    shown = replaced(tokens, positions, numpy.where(masked, hyper["mask_token"], originals(batch)))
    x = embedded(shown, weights, batch, hyper, drop)
    x = dense(x, weights, "generator.project")
    x = encoded(x, weights, batch, transformers.generator(hyper), drop, "generator.")
    logits = vocabulary_logits(x, weights, hyper, positions, "generator.")
    corrupted = replaced(tokens, positions, _sampled(logits, batch))
    x = embedded(corrupted, weights, batch, hyper, drop)
    x = encoded(x, weights, batch, hyper, drop, "discriminator.")
    x = gelu(dense(x, weights, "discriminator.transform"))
    scores = dense(x, weights, "discriminator.score")[..., 0]
    return [scores, logits, (corrupted != tokens).astype(float)]


def _sampled(logits: Array, batch: Arrays) -> Array:
    """Return the sampled tokens, (batch, predictions). No gradient passes through them."""
    noisy = logits + noise(batch["sampling_draws"], logits.shape[-1])
    if isinstance(noisy, numpy.ndarray):  # not while autograd traces
        first, second = numpy.partition(noisy, -2)[..., [-1, -2]].T
        Jumps.nearest = min(Jumps.nearest, float((first - second).min()))
    return np.argmax(noisy, axis=-1)


def loss(outputs: list[Array], batch: Arrays, hyper: Hyper) -> Array:
    scores, logits, labels = outputs
    generator = cross_entropy(logits, originals(batch))
    real = batch["attention_mask"]
    discriminator = np.sum(real * (np.logaddexp(0.0, scores) - labels * scores)) / np.sum(real)
    return hyper["generator_weight"] * generator + hyper["discriminator_weight"] * discriminator


def decided(weights: Arrays, batch: Arrays, hyper: Hyper) -> Arrays:
    """Return the batch, changed so that rounding cannot change a sample, but mistakes would.
    Sampling draws are raised until the sampled token leads by LEAD. Of every three masked
    positions, the first has the sampled token as its original, which is then no replacement, and
    the third keeps its token, by the smallest draw that does so."""
    third = numpy.arange(batch["mask_draws"].size).reshape(batch["mask_draws"].shape) % 3
    kept = numpy.where(third == 2, hyper["masked_percent"], batch["mask_draws"])
    batch = {**batch, "mask_draws": numpy.where(third == 0, 0, kept)}
    logits, draws = forward(weights, batch, hyper, False)[1], batch["sampling_draws"]
    while True:
        noisy = logits + noise(draws, logits.shape[-1])
        second, first = numpy.moveaxis(numpy.sort(noisy, axis=-1)[..., -2:], -1, 0)
        near = first - second < LEAD
        if not near.any():
            break
        draws = (draws + near) % 2**31
    batch["sampling_draws"] = draws
    sampled = noisy.argmax(axis=-1)
    tokens = numpy.where(third == 0, sampled, originals(batch))
    batch["token_ids"] = replaced(batch["token_ids"], batch["masked_positions"], tokens)
    return batch
