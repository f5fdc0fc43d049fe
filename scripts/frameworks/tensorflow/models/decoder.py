"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py).

Each layer with weights has a name, by which ``adapter.py`` knows it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from networks.transformers import MASKED_SCORE, added_share

from ..steps import traced
from .bert import embedding
from .layers import ModelDefinition, attended, initializer, tied_logits

#: Function that puts keys and values in a cache, and returns the visible ones.
Extend = Callable[[tf.Tensor, tf.Tensor], Sequence[tf.Tensor]]


class Cache:
    """Keys and values of one layer, (batch, heads, room, size) each, for up to ``room`` positions.
    ``xla``: whether XLA compiles the extension."""

    def __init__(self, hyper: Dict[str, Any], batch: int, room: int, dtype: str, xla: bool) -> None:
        size = hyper["hidden"] // hyper["heads"]
        zeros = tf.zeros((batch, hyper["key_value_heads"], room, size), dtype)
        self.room, self._xla = room, xla
        self._kept = [tf.Variable(zeros, trainable=False) for _ in range(2)]

    def extend(self, begin: tf.Tensor, *new: tf.Tensor) -> Sequence[tf.Tensor]:
        """Write ``new`` keys and values at position ``begin`` and return the keys and values to
        attend to: ``new`` itself if it has several positions, which must be the first ones, else
        the whole room."""
        length = new[0].shape[2]
        for kept, update in zip(self._kept, new):
            if self._xla:  # XLA treats slice bounds as constants and would compile for each
                kept.assign(keras.ops.slice_update(kept, (0, 0, begin, 0), update))
            else:
                kept[:, :, begin : begin + length].assign(update)
        return new if length > 1 else [tf.convert_to_tensor(kept) for kept in self._kept]


class Embeddings(layers.Layer):
    """Token ids (batch, sequence) to (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name)
        self.token = embedding("token", hyper["vocabulary"], hyper)
        self.position = None
        if hyper["position"] == "learned":
            self.position = embedding("position", hyper["positions"], hyper)
        self.dropout = _dropout(hyper)

    def call(self, token_ids: tf.Tensor, begin: Any = 0, training: bool = False) -> tf.Tensor:
        """Run the model. ``begin``: position of the first token."""
        x = self.token(token_ids)
        if self.position is not None:
            x += self.position(begin + tf.range(tf.shape(token_ids)[1]))
        return self.dropout(x, training=training)


class Positions(layers.Layer):
    """Positions as all layers need them, from token ids (batch, sequence): the causal mask that is
    added to the scores (sequence, sequence) and, for rotary positions, cosine and sine of their
    angles (sequence, size / 2), in float32. ``begin``: first position; ``room``: visible positions
    of a cache, None for the tokens themselves."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.size = hyper["hidden"] // hyper["heads"]
        self.base = hyper["rotary_base"] if hyper["position"] == "rotary" else None

    def call(
        self, token_ids: tf.Tensor, begin: Any = 0, room: Optional[int] = None
    ) -> List[tf.Tensor]:
        positions = begin + tf.range(tf.shape(token_ids)[1])
        seen = positions if room is None else tf.range(room)
        later = tf.cast(positions[:, tf.newaxis] < seen, self.compute_dtype) * MASKED_SCORE
        if self.base is None:
            return [later]
        halves = tf.range(self.size // 2, dtype=tf.float32)
        frequencies = self.base ** (-2.0 / self.size * halves)
        angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * frequencies
        return [later, tf.cos(angles), tf.sin(angles)]


def rotate(x: tf.Tensor, cosine: tf.Tensor, sine: tf.Tensor) -> tf.Tensor:
    """Rotate positions of (batch, heads, sequence, size) in float32 (RoPE); keep the dtype."""
    first, second = tf.split(tf.cast(x, tf.float32), 2, axis=-1)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return tf.cast(tf.concat(turned, axis=-1), x.dtype)


class Attention(layers.Layer):
    """Attention that keeps (batch, sequence, hidden). ``extend`` puts keys and values in a
    cache."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name, autocast=False)  # the angles stay in float32
        hidden, heads, groups = (hyper[k] for k in ("hidden", "heads", "key_value_heads"))
        self.parts = [heads, groups, groups]
        self.size = hidden // heads
        columns = sum(self.parts) * self.size
        self.query_key_value = _dense(columns, hyper, "query_key_value")
        # Keras keeps `output` for itself.
        self.output_dense = _dense(hidden, hyper, "output", added_share(hyper))
        self.dropout = _dropout(hyper)

    def call(
        self, tensors: List[tf.Tensor], extend: Optional[Extend] = None, training: bool = False
    ) -> tf.Tensor:
        x, later, *angles = tensors
        length = tf.shape(x)[1]
        every = tf.reshape(self.query_key_value(x), (-1, length, sum(self.parts), self.size))
        query, key, value = tf.split(tf.transpose(every, (0, 2, 1, 3)), self.parts, axis=1)
        if angles:
            query, key = rotate(query, *angles), rotate(key, *angles)
        if extend is not None:
            key, value = extend(key, value)
        context = attended(query, key, value, later, partial(self.dropout, training=training))
        return self.output_dense(tf.reshape(tf.transpose(context, (0, 2, 1, 3)), tf.shape(x)))


class FeedForward(layers.Layer):
    """Feed-forward part of a layer; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name)
        inner = hyper["intermediate"]
        self.gate = None
        if hyper["activation"] == "swiglu":
            self.gate = _dense(inner, hyper, "gate")
        self.up = _dense(inner, hyper, "up")
        self.down = _dense(hyper["hidden"], hyper, "down", added_share(hyper))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        up = self.up(x)
        if self.gate is None:
            return self.down(tf.nn.gelu(up, approximate=True))
        return self.down(tf.nn.silu(self.gate(x)) * up)


class DecoderLayer(layers.Layer):
    """Self-attention and feed-forward, each after a normalization, with a residual."""

    def __init__(self, hyper: Dict[str, Any], name: str) -> None:
        super().__init__(name=name, autocast=False)  # the angles stay in float32
        self.attention_norm = _norm(hyper, "attention_norm")
        self.attention = Attention(hyper, "attention")
        self.feed_forward_norm = _norm(hyper, "feed_forward_norm")
        self.feed_forward = FeedForward(hyper, "feed_forward")
        self.attention_dropout, self.feed_forward_dropout = _dropout(hyper), _dropout(hyper)

    def call(
        self, tensors: List[tf.Tensor], extend: Optional[Extend] = None, training: bool = False
    ) -> tf.Tensor:
        x, *positions = tensors
        y = self.attention([self.attention_norm(x), *positions], extend=extend, training=training)
        x += self.attention_dropout(y, training=training)
        y = self.feed_forward(self.feed_forward_norm(x))
        return x + self.feed_forward_dropout(y, training=training)


class TiedHead(layers.Layer):
    """Logits, by the token embedding."""

    def __init__(self, token: layers.Embedding, name: str) -> None:
        super().__init__(name=name)
        self.token = token

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tied_logits(x, self.token)


def _dense(units: int, hyper: Dict[str, Any], name: str, share: float = 1.0) -> layers.Dense:
    return layers.Dense(
        units,
        use_bias=hyper["bias"],
        kernel_initializer=initializer("normal", share * hyper["initializer_range"]),
        name=name,
    )


def _dropout(hyper: Dict[str, Any]) -> layers.Dropout:
    return layers.Dropout(hyper.get("dropout", 0.0))


def _norm(hyper: Dict[str, Any], name: str) -> layers.Layer:
    kind = {"layer": layers.LayerNormalization, "rms": layers.RMSNormalization}[hyper["norm"]]
    return kind(epsilon=hyper["norm_epsilon"], name=name)


class Generator:
    """Continues ``prompts`` (batch, sequence) by up to ``count`` tokens. The passes over the
    prompts and over one token are one graph each, with fixed shapes."""

    def __init__(
        self,
        model: keras.Model,
        hyper: Dict[str, Any],
        prompts: tf.Tensor,
        count: int,
        xla: bool,
    ) -> None:
        batch, length = prompts.shape
        dtype = keras.config.dtype_policy().compute_dtype
        caches = [Cache(hyper, batch, length + count, dtype, xla) for _ in range(hyper["layers"])]

        def follow(tokens: tf.Tensor, begin: tf.Tensor) -> Any:
            """Return the tokens (batch,) after ``tokens``, which start at position ``begin``, the
            float32 logits they were chosen by, and their position. Keys and values are appended to
            ``caches``, one for each layer."""
            tokens = tf.reshape(tokens, (batch, -1))
            room = caches[0].room if tokens.shape[1] == 1 else None
            positions = Positions(hyper)(tokens, begin=begin, room=room)
            x = model.get_layer("embeddings")(tokens, begin=begin)
            for number, cache in enumerate(caches):
                extend = partial(cache.extend, begin)
                x = model.get_layer(f"layers.{number}")([x, *positions], extend=extend)
            logits = model.get_layer("head")(model.get_layer("norm")(x[:, -1:]))
            logits = tf.cast(logits[:, 0], tf.float32)
            return tf.argmax(logits, axis=-1), logits, begin + tokens.shape[1]

        self._follow = traced(follow, xla)
        self._prompts, self._none = prompts, tf.constant(0)
        self._over_prompts = self._follow.get_concrete_function(prompts, self._none)
        self.over_one = self._follow.get_concrete_function(prompts[:, 0], self._none)

    def prefill(self) -> tf.Tensor:
        return self._after(self._over_prompts(self._prompts, self._none))

    def decode(self, tokens: Optional[np.ndarray] = None) -> tf.Tensor:
        if tokens is not None:
            self._last = tf.constant(tokens)
        return self._after(self.over_one(self._last, self._begin))

    def _after(self, results: Any) -> tf.Tensor:
        self._last, self.logits, self._begin = results
        return self._last


class Definition(ModelDefinition):
    Generator = Generator

    def build(self) -> keras.Model:
        """Map token ids (batch, sequence) to float32 logits (batch, sequence, vocabulary or
        classes)."""
        hyper = self.hyper
        token_ids = keras.Input((None,), dtype="int64", name="token_ids")
        embeddings = Embeddings(hyper, name="embeddings")
        x, positions = embeddings(token_ids), Positions(hyper)(token_ids)
        for number in range(hyper["layers"]):
            x = DecoderLayer(hyper, name=f"layers.{number}")([x, *positions])
        x = _norm(hyper, "norm")(x)
        head = TiedHead(embeddings.token, name="head")
        if not hyper["tied"]:
            head = _dense(hyper.get("classes", hyper["vocabulary"]), hyper, "head")
        return keras.Model(token_ids, layers.Activation("linear", dtype="float32")(head(x)))

    def inputs(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return batch["token_ids"]
