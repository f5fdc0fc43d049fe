"""Causal language models: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971), told apart by their model config (see scripts/reference/decoder.py)."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Tuple

import tensorflow as tf
from networks import transformers
from networks.transformers import MASKED_SCORE

from ..steps import Scope, Variables
from . import layers


def _angles(positions: tf.Tensor, size: int, base: float) -> Tuple[tf.Tensor, tf.Tensor]:
    """Return cosine and sine of the angles of each position, (sequence, size / 2)."""
    frequencies = base ** (-2.0 / size * tf.range(size // 2, dtype=tf.float32))
    angles = tf.cast(positions, tf.float32)[:, None] * frequencies
    return tf.cos(angles), tf.sin(angles)


def _gelu_tanh(x: tf.Tensor) -> tf.Tensor:
    """Return the tanh approximation of GELU, as in OpenAI's code."""
    return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))


class Definition(layers.ModelDefinition):
    def variables(self) -> Variables:
        return layers.drawn(transformers.decoder(self.hyper))

    def forward(
        self, variables: Variables, batch: Dict[str, Any], training: bool, scope: Scope
    ) -> Tuple[List[tf.Tensor], Dict[str, tf.Tensor]]:
        """Return logits (batch, sequence, vocabulary or classes); there are no running statistics.
        Every ``scope()`` holds a part that is compiled separately."""
        hyper = self.hyper
        hidden, heads, groups = hyper["hidden"], hyper["heads"], hyper["key_value_heads"]
        size = hidden // heads
        rows, length = batch["token_ids"].shape.as_list()
        rotary = hyper["position"] == "rotary"

        # As in BERT, activations are (batch x sequence, hidden).
        def dense(x: tf.Tensor, name: str) -> tf.Tensor:
            return layers.dense(x, variables, name)

        def norm(x: tf.Tensor, name: str) -> tf.Tensor:
            normalised = {"layer": layers.layer_norm, "rms": layers.rms_norm}[hyper["norm"]]
            return normalised(x, variables, name, hyper["norm_epsilon"])

        def dropout(x: tf.Tensor) -> tf.Tensor:
            return layers.dropout(x, hyper.get("dropout", 0.0), training)

        def rotated(x: tf.Tensor) -> tf.Tensor:
            first, second = tf.split(x, 2, axis=-1)
            turned = [first * cosine - second * sine, second * cosine + first * sine]
            return tf.concat(turned, axis=-1)

        def attention(x: tf.Tensor, name: str) -> tf.Tensor:
            every = tf.reshape(dense(x, f"{name}.query_key_value"), (rows, length, -1, size))
            every = tf.transpose(every, (0, 2, 1, 3))  # batch, heads, sequence, size
            query, key, value = tf.split(every, [heads, groups, groups], axis=1)
            if rotary:
                query, key = rotated(query), rotated(key)
            # Query heads that share a key head become further rows of one matmul, so that keys are
            # not copied.
            query = tf.reshape(query * size**-0.5, (rows, groups, -1, size))
            scores = tf.matmul(query, key, transpose_b=True)
            weights = tf.nn.softmax(tf.reshape(scores, (rows, heads, length, length)) + later)
            context = tf.matmul(tf.reshape(dropout(weights), scores.shape), value)
            context = tf.transpose(tf.reshape(context, (rows, heads, length, size)), (0, 2, 1, 3))
            return dense(tf.reshape(context, (-1, hidden)), f"{name}.output")

        def feed_forward(x: tf.Tensor, name: str) -> tf.Tensor:
            up = dense(x, f"{name}.up")
            if hyper["activation"] == "swiglu":
                gate = dense(x, f"{name}.gate")
                return dense(gate * tf.sigmoid(gate) * up, f"{name}.down")
            return dense(_gelu_tanh(up), f"{name}.down")

        tokens = variables["embeddings.token.weight"]
        with scope():
            positions = tf.range(length)
            later = tf.cast(positions[:, None] < positions, tf.float32) * MASKED_SCORE
            x = tf.gather(tokens, batch["token_ids"])
            if rotary:
                cosine, sine = _angles(positions, size, hyper["rotary_base"])
            else:
                x += variables["embeddings.position.weight"][:length]
            x = dropout(tf.reshape(x, (-1, hidden)))
        for layer in (f"layers.{number}" for number in range(hyper["layers"])):
            with scope():
                x += dropout(attention(norm(x, f"{layer}.attention_norm"), f"{layer}.attention"))
                y = norm(x, f"{layer}.feed_forward_norm")
                x += dropout(feed_forward(y, f"{layer}.feed_forward"))
        with scope():
            x = norm(x, "norm")
            logits = tf.matmul(x, tokens, transpose_b=True) if hyper["tied"] else dense(x, "head")
            logits = tf.reshape(logits, (rows, length, -1))
        return [logits], {}
