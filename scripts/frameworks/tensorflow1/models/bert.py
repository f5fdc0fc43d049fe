"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Tuple

import tensorflow as tf
from networks import transformers
from networks.transformers import MASKED_SCORE

from ..steps import Scope, Variables
from . import layers


def _gelu(x: tf.Tensor) -> tf.Tensor:
    return 0.5 * x * (1.0 + tf.math.erf(x * math.sqrt(0.5)))


class Definition(layers.ModelDefinition):
    def variables(self) -> Variables:
        return layers.drawn(transformers.bert(self.hyper))

    def forward(
        self, variables: Variables, batch: Dict[str, Any], training: bool, scope: Scope
    ) -> Tuple[List[tf.Tensor], Dict[str, tf.Tensor]]:
        """Return the outputs of the reference; there are no running statistics. Every ``scope()``
        holds a part that is compiled separately."""
        hyper = self.hyper
        hidden, heads = hyper["hidden"], hyper["heads"]
        rows, length = batch["token_ids"].shape.as_list()

        # Everything between the embeddings and the heads is (batch x sequence, hidden), so that
        # each dense layer is one MatMul without a reshape.
        def dense(x: tf.Tensor, name: str) -> tf.Tensor:
            return layers.dense(x, variables, name)

        def norm(x: tf.Tensor, name: str) -> tf.Tensor:
            return layers.layer_norm(x, variables, name, hyper["layer_norm_epsilon"])

        def dropout(x: tf.Tensor) -> tf.Tensor:
            return layers.dropout(x, hyper["dropout"], training)

        def split(x: tf.Tensor) -> tf.Tensor:
            """Return the heads, (batch, heads, sequence, hidden / heads)."""
            return tf.transpose(tf.reshape(x, (rows, length, heads, -1)), (0, 2, 1, 3))

        def attention(x: tf.Tensor, name: str) -> tf.Tensor:
            query = split(dense(x, f"{name}.query") * (hidden // heads) ** -0.5)
            key, value = split(dense(x, f"{name}.key")), split(dense(x, f"{name}.value"))
            weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + ignored)
            context = tf.matmul(dropout(weights), value)
            context = tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (-1, hidden))
            return dense(context, f"{name}.output")

        tokens = variables["embeddings.token.weight"]
        with scope():
            ignored = tf.cast(1 - batch["attention_mask"], tf.float32) * MASKED_SCORE
            ignored = ignored[:, None, None, :]
            x = tf.gather(tokens, batch["token_ids"])
            x += tf.gather(variables["embeddings.segment.weight"], batch["segment_ids"])
            x += variables["embeddings.position.weight"][:length]
            x = dropout(norm(tf.reshape(x, (-1, hidden)), "embeddings.norm"))
        for layer in (f"layers.{number}" for number in range(hyper["layers"])):
            with scope():
                attended = dropout(attention(x, f"{layer}.attention"))
                x = norm(x + attended, f"{layer}.attention_norm")
                inner = _gelu(dense(x, f"{layer}.intermediate"))
                x = norm(x + dropout(dense(inner, f"{layer}.output")), f"{layer}.output_norm")
        with scope():
            if hyper.get("head") == "span":
                return [tf.reshape(dense(x, "span"), (rows, length, 2))], {}
            first = tf.range(rows, dtype=tf.int64) * length
            pooled = tf.tanh(dense(tf.gather(x, first), "pooler"))
            if "classes" in hyper:
                return [dense(pooled, "classifier")], {}
            masked = tf.gather(x, tf.reshape(batch["masked_positions"] + first[:, None], [-1]))
            masked = norm(_gelu(dense(masked, "transform")), "transform_norm")
            logits = tf.matmul(masked, tokens, transpose_b=True)
            logits = tf.nn.bias_add(logits, variables["decoder_bias"])
            logits = tf.reshape(logits, (rows, -1, hyper["vocabulary"]))
            next_sentence = dense(pooled, "next_sentence")
        return [logits, next_sentence], {}
