"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py. Each layer with weights has a name, by which ``adapter.py`` knows it."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

import keras
import tensorflow as tf
from keras import layers
from networks.transformers import MASKED_SCORE

from .layers import ModelDefinition, initializer, tied_logits

INPUTS = ("token_ids", "segment_ids", "attention_mask", "masked_positions")


def encoded(
    x: tf.Tensor, attention_mask: tf.Tensor, hyper: Dict[str, Any], prefix: str = ""
) -> tf.Tensor:
    """Return (batch, sequence, hidden) after the last layer."""
    for number in range(hyper["layers"]):
        x = EncoderLayer(hyper, name=f"{prefix}layers.{number}")([x, attention_mask])
    return x


def masked_words(
    x: tf.Tensor,
    positions: tf.Tensor,
    hyper: Dict[str, Any],
    embeddings: Embeddings,
    prefix: str = "",
) -> tf.Tensor:
    """Return logits (batch, predictions, vocabulary) of masked ``positions``, by the token
    embedding."""
    hidden = hyper["hidden"]
    masked = dense(hidden, hyper, f"{prefix}transform", gelu)(Gather()([x, positions]))
    masked = layer_normalization(hyper, f"{prefix}transform_norm")(masked)
    return TiedDecoder(hyper, embeddings.token, f"{prefix}decoder_bias")(masked)


class Embeddings(layers.Layer):
    """Token, position and segment embeddings, summed, normalized and dropped out."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name)
        self.token = embedding("token", hyper["vocabulary"], hyper)
        self.position = embedding("position", hyper["positions"], hyper)
        self.segment = embedding("segment", hyper["segments"], hyper)
        self.norm = layer_normalization(hyper, "norm")
        self.dropout = layers.Dropout(hyper["dropout"])

    def call(self, tensors: List[tf.Tensor], training: bool = False) -> tf.Tensor:
        token_ids, segment_ids = tensors
        x = self.token(token_ids) + self.segment(segment_ids)
        x += self.position(tf.range(tf.shape(token_ids)[1]))
        return self.dropout(self.norm(x), training=training)


class Attention(layers.Layer):
    """Self-attention with several heads; keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name)
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.head_size = hidden // self.heads
        self.query, self.key, self.value, self.output_dense = (
            dense(hidden, hyper, own_name) for own_name in ("query", "key", "value", "output")
        )
        self.dropout = layers.Dropout(hyper["dropout"])

    def call(self, tensors: List[tf.Tensor], training: bool = False) -> tf.Tensor:
        x, mask = tensors
        query = self._split(self.query(x) * self.head_size**-0.5)
        scores = tf.matmul(query, self._split(self.key(x)), transpose_b=True)
        ignored = tf.cast(1 - mask, scores.dtype)[:, tf.newaxis, tf.newaxis, :]
        weights = tf.nn.softmax(scores + ignored * MASKED_SCORE)
        weights = self.dropout(weights, training=training)
        context = tf.matmul(weights, self._split(self.value(x)))
        return self.output_dense(tf.reshape(tf.transpose(context, (0, 2, 1, 3)), tf.shape(x)))

    def _split(self, x: tf.Tensor) -> tf.Tensor:
        """Map (batch, sequence, hidden) to (batch, heads, sequence, head size)."""
        shape = (-1, tf.shape(x)[1], self.heads, self.head_size)
        return tf.transpose(tf.reshape(x, shape), (0, 2, 1, 3))


class EncoderLayer(layers.Layer):
    """Self-attention and feed-forward, each with a residual and then a normalization."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name)
        self.attention = Attention(hyper, "attention")
        self.attention_norm = layer_normalization(hyper, "attention_norm")
        self.intermediate = dense(hyper["intermediate"], hyper, "intermediate", gelu)
        # Keras reserves the attribute `output`.
        self.output_dense = dense(hyper["hidden"], hyper, "output")
        self.output_norm = layer_normalization(hyper, "output_norm")
        self.attention_dropout, self.output_dropout = (
            layers.Dropout(hyper["dropout"]) for _ in range(2)
        )

    def call(self, tensors: List[tf.Tensor], training: bool = False) -> tf.Tensor:
        x, mask = tensors
        attended = self.attention([x, mask], training=training)
        x = self.attention_norm(x + self.attention_dropout(attended, training=training))
        output = self.output_dense(self.intermediate(x))
        return self.output_norm(x + self.output_dropout(output, training=training))


class Gather(layers.Layer):
    """Layer from (batch, sequence, hidden) and positions (batch, predictions) to (batch,
    predictions, hidden)."""

    def call(self, tensors: List[tf.Tensor]) -> tf.Tensor:
        x, positions = tensors
        return tf.gather(x, positions, axis=1, batch_dims=1)


class TiedDecoder(layers.Layer):
    """Logits of masked words: the decoder is the token embedding, with a separate bias."""

    def __init__(self, hyper: Dict[str, Any], token: layers.Embedding, name: str) -> None:
        # Named for its bias, the only weight it owns: see `adapter.py`.
        super().__init__(name=name)
        self.token = token
        self.bias = self.add_weight(shape=(hyper["vocabulary"],), initializer="zeros", name="value")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tied_logits(x, self.token, self.bias)


def dense(units: int, hyper: Dict[str, Any], name: str, activation: Any = None) -> layers.Dense:
    drawn = initializer("normal", hyper["initializer_range"])
    return layers.Dense(units, activation=activation, kernel_initializer=drawn, name=name)


def embedding(name: str, rows: int, hyper: Dict[str, Any]) -> layers.Embedding:
    drawn = initializer("normal", hyper["initializer_range"])
    return layers.Embedding(rows, hyper["hidden"], embeddings_initializer=drawn, name=name)


def layer_normalization(hyper: Dict[str, Any], name: str) -> layers.LayerNormalization:
    return layers.LayerNormalization(epsilon=hyper["layer_norm_epsilon"], name=name)


def gelu(x: tf.Tensor) -> tf.Tensor:
    return keras.activations.gelu(x, approximate=False)


class Definition(ModelDefinition):
    def build(self) -> keras.Model:
        """Map a dictionary of the INPUTS to the outputs of the reference in float32."""
        hyper = self.hyper
        classes = hyper.get("classes")
        spans = hyper.get("head") == "span"
        names = INPUTS[:-1] if classes or spans else INPUTS
        tensors = {name: keras.Input((None,), dtype="int64", name=name) for name in names}
        float32 = layers.Activation("linear", dtype="float32")
        embeddings = Embeddings(hyper, name="embeddings")
        x = embeddings([tensors["token_ids"], tensors["segment_ids"]])
        x = encoded(x, tensors["attention_mask"], hyper)
        if spans:
            return keras.Model(tensors, float32(dense(2, hyper, "span")(x)))
        pooled = dense(hyper["hidden"], hyper, "pooler", "tanh")(x[:, 0])
        if classes:
            return keras.Model(tensors, float32(dense(classes, hyper, "classifier")(pooled)))
        logits = masked_words(x, tensors["masked_positions"], hyper, embeddings)
        next_sentence = dense(2, hyper, "next_sentence")(pooled)
        return keras.Model(tensors, [float32(logits), float32(next_sentence)])

    def inputs(self, batch: Mapping[str, tf.Tensor]) -> Dict[str, tf.Tensor]:
        return {name: batch[name] for name in INPUTS if name in batch}
