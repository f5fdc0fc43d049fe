"""BERT-base pre-training (Devlin et al., 2018, arXiv:1810.04805): masked words and next sentence.

The vocabulary is projected at the masked positions alone, as in the authors' own code.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

import keras
import tensorflow as tf
from keras import layers

INPUTS = ("token_ids", "segment_ids", "attention_mask", "masked_positions")
MASKED_SCORE = -10000.0  # the authors' value; unlike -1e9 it fits float16


def build(facts: Dict[str, Any]) -> keras.Model:
    """A dictionary of the INPUTS to float32 logits: of the masked words (batch, predictions,
    vocabulary), and of the next sentence (batch, 2)."""
    hyperparameters = facts["hyperparameters"]
    tensors = {name: keras.Input((None,), dtype="int64", name=name) for name in INPUTS}
    embeddings = Embeddings(hyperparameters)
    x = embeddings([tensors["token_ids"], tensors["segment_ids"]])
    for _ in range(hyperparameters["layers"]):
        x = EncoderLayer(hyperparameters)([x, tensors["attention_mask"]])
    words = MaskedWords(hyperparameters, embeddings.tokens)([x, tensors["masked_positions"]])
    pooled = _dense(hyperparameters["hidden"], hyperparameters, "tanh")(x[:, 0])
    next_sentence = _dense(2, hyperparameters)(pooled)
    float32 = layers.Activation("linear", dtype="float32")
    return keras.Model(tensors, [float32(words), float32(next_sentence)])


def inputs(batch: Dict[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
    return {name: batch[name] for name in INPUTS}


def loss(outputs: Sequence[tf.Tensor], batch: Dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean cross entropy over the masked positions plus that over the sequences."""
    words, next_sentence = outputs
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return tf.reduce_mean(entropy(batch["masked_labels"], words)) + tf.reduce_mean(
        entropy(batch["next_sentence_labels"], next_sentence)
    )


class Embeddings(layers.Layer):
    """Token, position and segment embeddings, summed, normalized and dropped out."""

    def __init__(self, hyperparameters: Dict[str, Any]) -> None:
        super().__init__()
        self.tokens, self.positions, self.segments = (
            layers.Embedding(
                hyperparameters[name],
                hyperparameters["hidden"],
                embeddings_initializer=_initializer(hyperparameters),
            )
            for name in ("vocabulary", "positions", "segments")
        )
        self.normalization = _layer_normalization(hyperparameters)
        self.dropout = layers.Dropout(hyperparameters["dropout"])

    def call(self, tensors: List[tf.Tensor], training: bool = False) -> tf.Tensor:
        token_ids, segment_ids = tensors
        x = self.tokens(token_ids) + self.segments(segment_ids)
        x += self.positions(tf.range(tf.shape(token_ids)[1]))
        return self.dropout(self.normalization(x), training=training)


class EncoderLayer(layers.Layer):
    """Self-attention and feed-forward, each with a residual and a normalization behind it."""

    def __init__(self, hyperparameters: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyperparameters["hidden"]
        self.heads = hyperparameters["heads"]
        self.head_size = hidden // self.heads
        self.query, self.key, self.value, self.attention_output = (
            _dense(hidden, hyperparameters) for _ in range(4)
        )
        self.intermediate = _dense(hyperparameters["intermediate"], hyperparameters, _gelu)
        self.output_dense = _dense(hidden, hyperparameters)
        self.attention_dropout, self.attention_output_dropout, self.output_dropout = (
            layers.Dropout(hyperparameters["dropout"]) for _ in range(3)
        )
        self.attention_normalization = _layer_normalization(hyperparameters)
        self.output_normalization = _layer_normalization(hyperparameters)

    def call(self, tensors: List[tf.Tensor], training: bool = False) -> tf.Tensor:
        x, mask = tensors
        attended = self.attention_output(self._attention(x, mask, training))
        attended = self.attention_output_dropout(attended, training=training)
        x = self.attention_normalization(x + attended)
        output = self.output_dense(self.intermediate(x))
        return self.output_normalization(x + self.output_dropout(output, training=training))

    def _attention(self, x: tf.Tensor, mask: tf.Tensor, training: bool) -> tf.Tensor:
        query = self._split(self.query(x) * self.head_size**-0.5)
        scores = tf.matmul(query, self._split(self.key(x)), transpose_b=True)
        ignored = tf.cast(1 - mask, scores.dtype)[:, tf.newaxis, tf.newaxis, :]
        weights = tf.nn.softmax(scores + ignored * MASKED_SCORE)
        weights = self.attention_dropout(weights, training=training)
        context = tf.matmul(weights, self._split(self.value(x)))
        return tf.reshape(tf.transpose(context, (0, 2, 1, 3)), tf.shape(x))

    def _split(self, x: tf.Tensor) -> tf.Tensor:
        """(batch, sequence, hidden) to (batch, heads, sequence, head size)."""
        shape = (-1, tf.shape(x)[1], self.heads, self.head_size)
        return tf.transpose(tf.reshape(x, shape), (0, 2, 1, 3))


class MaskedWords(layers.Layer):
    """The masked words' logits. The decoder is the token embedding, with a bias of its own."""

    def __init__(self, hyperparameters: Dict[str, Any], tokens: layers.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.transform = _dense(hyperparameters["hidden"], hyperparameters, _gelu)
        self.normalization = _layer_normalization(hyperparameters)
        self.bias = self.add_weight(shape=(hyperparameters["vocabulary"],), initializer="zeros")

    def call(self, tensors: List[tf.Tensor]) -> tf.Tensor:
        x, positions = tensors
        x = tf.gather(x, positions, axis=1, batch_dims=1)
        x = self.normalization(self.transform(x))
        flat = tf.reshape(x, (-1, x.shape[-1]))
        decoder = tf.cast(self.tokens.embeddings, x.dtype)
        logits = tf.matmul(flat, decoder, transpose_b=True) + tf.cast(self.bias, x.dtype)
        return tf.reshape(logits, (-1, tf.shape(positions)[1], logits.shape[-1]))


def _dense(units: int, hyperparameters: Dict[str, Any], activation: Any = None) -> layers.Dense:
    return layers.Dense(
        units, activation=activation, kernel_initializer=_initializer(hyperparameters)
    )


def _initializer(hyperparameters: Dict[str, Any]) -> keras.initializers.Initializer:
    # A new one for each weight: a Keras initializer repeats its values at every use.
    return keras.initializers.RandomNormal(stddev=hyperparameters["initializer_range"])


def _layer_normalization(hyperparameters: Dict[str, Any]) -> layers.LayerNormalization:
    return layers.LayerNormalization(epsilon=hyperparameters["layer_norm_epsilon"])


def _gelu(x: tf.Tensor) -> tf.Tensor:
    return keras.activations.gelu(x, approximate=False)
