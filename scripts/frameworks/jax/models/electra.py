"""ELECTRA's pre-training (Clark et al. 2020, arXiv:2003.10555): a generator replaces tokens, a
discriminator tells which; see scripts/reference/electra.py."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from networks import Weight, transformers
from networks.transformers import DRAWS, MIXER, WORD, generator

from .bert import DROPOUTS_OF_A_LAYER, EncoderDefinition, embedded, encoded, gelu, vocabulary_logits
from .layers import Arrays, Hyper, Key, cross_entropy, dense, keys


def _noise(draws: Array, vocabulary: int) -> Array:
    """Return the Gumbel noise of each word (batch, predictions, vocabulary), computed from one draw
    per prediction."""
    mixed = draws.astype(jnp.uint32)[..., None] ^ jnp.arange(
        vocabulary, dtype=jnp.uint32
    ) * np.uint32(WORD)
    for _ in range(2):
        mixed = (mixed ^ mixed >> 16) * np.uint32(MIXER)
    uniform = (mixed ^ mixed >> 16) >> 12
    return -jnp.log(-jnp.log((uniform.astype(jnp.float32) + 0.5) / DRAWS))


def _replaced(tokens: Array, positions: Array, new: Array) -> Array:
    """Return ``tokens`` (batch, sequence) with ``new`` ones (batch, predictions) at
    ``positions``."""
    return jnp.put_along_axis(tokens, positions, new, axis=1, inplace=False)


def _originals(batch: Arrays) -> Array:
    """Return the tokens at the masked positions, (batch, predictions)."""
    return jnp.take_along_axis(batch["token_ids"], batch["masked_positions"], axis=1)


class Definition(EncoderDefinition):
    def weights(self) -> Mapping[str, Weight]:
        return transformers.electra(self.hyper)

    def heads_of(self, hyper: Hyper) -> Dict[str, Sequence[int]]:
        """Return the number of attention heads of a projection; each encoder has its own
        matrices."""
        heads = (hyper["heads"],), (generator(hyper)["heads"],)
        return dict(zip(("discriminator", "generator"), heads))

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        """Return logits that a token is replaced (batch, sequence), the generator's of the masked
        positions (batch, predictions, vocabulary), and 1 where a token is replaced, else 0 (batch,
        sequence)."""
        hyper = self.hyper
        dropouts = keys(key, 2 * (1 + DROPOUTS_OF_A_LAYER * hyper["layers"]))
        tokens, positions = batch["token_ids"], batch["masked_positions"]
        masked = batch["mask_draws"] < hyper["masked_percent"]
        shown = jnp.where(masked, hyper["mask_token"], _originals(batch))
        shown = _replaced(tokens, positions, shown)
        x = embedded(parameters, shown, batch, hyper, dtype, next(dropouts))
        x = dense(parameters, "generator.project", x)
        x = encoded(parameters, x, batch, generator(hyper), dropouts, "generator.")
        logits = vocabulary_logits(parameters, x, positions, hyper, "generator.")
        noisy = lax.stop_gradient(logits).astype(jnp.float32) + _noise(
            batch["sampling_draws"], logits.shape[-1]
        )
        sampled = jnp.argmax(noisy, axis=-1).astype(tokens.dtype)
        corrupted = _replaced(tokens, positions, sampled)
        x = embedded(parameters, corrupted, batch, hyper, dtype, next(dropouts))
        x = encoded(parameters, x, batch, hyper, dropouts, "discriminator.")
        x = gelu(dense(parameters, "discriminator.transform", x))
        scores = dense(parameters, "discriminator.score", x)[..., 0]
        return (scores, logits, (corrupted != tokens).astype(dtype)), statistics

    def loss(self, outputs: Tuple[Array, ...], batch: Arrays) -> Array:
        """Return the mean cross entropies of the generator over the masked positions and of the
        discriminator over all tokens except padding, weighted."""
        hyper = self.hyper
        scores, logits, replaced = outputs
        scores, replaced = scores.astype(jnp.float32), replaced.astype(jnp.float32)
        generated = cross_entropy(logits, _originals(batch))
        real = batch["attention_mask"].astype(jnp.float32)
        discriminator = (real * (jax.nn.softplus(scores) - replaced * scores)).sum() / real.sum()
        return hyper["generator_weight"] * generated + hyper["discriminator_weight"] * discriminator
