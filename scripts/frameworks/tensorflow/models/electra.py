"""ELECTRA's pre-training (Clark et al. 2020, arXiv:2003.10555): a generator replaces tokens, a
discriminator tells which; see scripts/reference/electra.py. Each layer with weights has a
name, by which ``adapter.py`` knows it."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

import keras
import tensorflow as tf
from keras import layers
from networks.transformers import DRAWS, MASK, MIXER, WORD, generator

from .bert import Embeddings, dense, encoded, gelu, masked_words
from .layers import ModelDefinition

INPUTS = (
    *("token_ids", "segment_ids", "attention_mask", "masked_positions"),
    *("mask_draws", "sampling_draws"),
)


def at(positions: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """Return the ``tokens`` (batch, sequence) at ``positions``, (batch, predictions)."""
    return tf.gather(tokens, positions, axis=1, batch_dims=1)


def replaced(tokens: tf.Tensor, positions: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Return ``tokens`` (batch, sequence) with ``new`` ones (batch, predictions) at
    ``positions``."""
    rows = tf.range(tf.shape(positions)[0], dtype=positions.dtype)[:, tf.newaxis]
    indices = tf.stack([tf.broadcast_to(rows, tf.shape(positions)), positions], axis=-1)
    return tf.tensor_scatter_nd_update(tokens, indices, new)


class Masked(layers.Layer):
    """Layer that replaces the token ids at most of the masked positions by the mask token."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token, self.percent = hyper["mask_token"], hyper["masked_percent"]

    def call(self, tensors: List[tf.Tensor]) -> tf.Tensor:
        tokens, positions, draws = tensors
        mask = tf.constant(self.token, tokens.dtype)
        shown = tf.where(draws < self.percent, mask, at(positions, tokens))
        return replaced(tokens, positions, shown)


def noise(draws: tf.Tensor, vocabulary: int) -> tf.Tensor:
    """Return the Gumbel noise of each word (batch, predictions, vocabulary), computed from one draw
    per prediction."""
    bits = tf.bitwise
    mask, half, lower = (tf.constant(number, tf.int64) for number in (MASK, 16, 12))
    patterns = bits.bitwise_and(tf.range(vocabulary, dtype=tf.int64) * WORD, mask)
    mixed = bits.bitwise_xor(draws[..., tf.newaxis], patterns)
    for _ in range(2):
        mixed = bits.bitwise_xor(mixed, bits.right_shift(mixed, half)) * MIXER
        mixed = bits.bitwise_and(mixed, mask)
    mixed = bits.bitwise_xor(mixed, bits.right_shift(mixed, half))
    uniform = tf.cast(bits.right_shift(mixed, lower), tf.float32)
    return -tf.math.log(-tf.math.log((uniform + 0.5) / DRAWS))


class Sampled(layers.Layer):
    """Layer that samples tokens from logits (batch, predictions, vocabulary), by the largest sum of
    logit and Gumbel noise; the noise comes from uniform draws (batch, predictions). Returns tokens
    (batch, predictions)."""

    def call(self, tensors: List[tf.Tensor]) -> tf.Tensor:
        logits, draws = tensors
        return tf.argmax(tf.cast(logits, tf.float32) + noise(draws, logits.shape[-1]), axis=-1)


class Replaced(layers.Layer):
    """Layer that replaces the token ids at the masked positions."""

    def call(self, tensors: List[tf.Tensor]) -> tf.Tensor:
        return replaced(*tensors)


class Differ(layers.Layer):
    """Layer that returns 1 where two arrays differ, else 0."""

    def call(self, tensors: List[tf.Tensor]) -> tf.Tensor:
        return tf.cast(tensors[0] != tensors[1], self.compute_dtype)


class Definition(ModelDefinition):
    def build(self) -> keras.Model:
        """Map a dictionary of the INPUTS to float32 arrays: logits that a token is replaced (batch,
        sequence), the generator's of the masked positions (batch, predictions, vocabulary), and 1
        where a token is replaced, else 0 (batch, sequence)."""
        hyper = self.hyper
        generator_hyper = generator(hyper)
        inputs = {name: keras.Input((None,), dtype="int64", name=name) for name in INPUTS}
        tokens, segments, mask, positions, _, draws = inputs.values()
        # the generator and the discriminator share the embeddings
        embeddings = Embeddings(hyper, name="embeddings")
        shown = Masked(hyper)([tokens, positions, inputs["mask_draws"]])
        x = dense(generator_hyper["hidden"], hyper, "generator.project")(
            embeddings([shown, segments])
        )
        x = encoded(x, mask, generator_hyper, "generator.")
        logits = masked_words(x, positions, hyper, embeddings, "generator.")
        corrupted = Replaced()([tokens, positions, Sampled()([logits, draws])])
        x = encoded(embeddings([corrupted, segments]), mask, hyper, "discriminator.")
        x = dense(hyper["hidden"], hyper, "discriminator.transform", gelu)(x)
        scores = dense(1, hyper, "discriminator.score")(x)[..., 0]
        float32 = layers.Activation("linear", dtype="float32")
        outputs = (scores, logits, Differ()([corrupted, tokens]))
        return keras.Model(inputs, [float32(output) for output in outputs])

    def inputs(self, batch: Mapping[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
        return {name: batch[name] for name in INPUTS}

    def loss(self, outputs: Sequence[tf.Tensor], batch: Dict[str, tf.Tensor]) -> tf.Tensor:
        """Return the mean cross entropies of the generator over the masked positions and of the
        discriminator over all tokens except padding, weighted."""
        scores, logits, replaced = outputs
        hyper = self.hyper
        originals = at(batch["masked_positions"], batch["token_ids"])
        generator = tf.nn.sparse_softmax_cross_entropy_with_logits(originals, logits)
        real = tf.cast(batch["attention_mask"], scores.dtype)
        entropies = real * tf.nn.sigmoid_cross_entropy_with_logits(replaced, scores)
        discriminator = tf.reduce_sum(entropies) / tf.reduce_sum(real)
        return hyper["generator_weight"] * tf.reduce_mean(generator) + (
            hyper["discriminator_weight"] * discriminator
        )
