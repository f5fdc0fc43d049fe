"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

import jax
import jax.numpy as jnp
from jax import Array
from networks import Weight, transformers

from .layers import (
    Arrays,
    Hyper,
    Key,
    ModelDefinition,
    attention,
    cut,
    dense,
    dropout,
    joined,
    keys,
    layer_norm,
)

DROPOUTS_OF_A_LAYER = 3  # attention probabilities, attention output, feed-forward output

Keys = Iterator[Key]


def _attention(
    parameters: Arrays, name: str, x: Array, mask: Array, hyper: Hyper, key: Key
) -> Array:
    """Map (batch, sequence, hidden) and a mask (batch, 1, 1, sequence) to (batch, sequence,
    hidden)."""
    query, key_of_token, value = (
        dense(parameters, f"{name}.{kind}", x).reshape(*x.shape[:2], hyper["heads"], -1)
        for kind in ("query", "key", "value")
    )
    context = attention(query, key_of_token, value, mask, hyper["dropout"], key)
    return dense(parameters, f"{name}.output", context.reshape(x.shape))


def gelu(x: Array) -> Array:
    return jax.nn.gelu(x, approximate=False)  # with the error function, as in the authors' code


def embedded(
    parameters: Arrays, token_ids: Array, batch: Arrays, hyper: Hyper, dtype: Any, key: Key
) -> Array:
    """Return the embeddings of ``token_ids`` (batch, sequence): (batch, sequence, hidden) in
    ``dtype``."""
    x = parameters["embeddings.token.weight"][token_ids]
    x = x + parameters["embeddings.segment.weight"][batch["segment_ids"]]
    x = x + parameters["embeddings.position.weight"][: x.shape[1]]
    x = layer_norm(parameters, "embeddings.norm", x, hyper["layer_norm_epsilon"]).astype(dtype)
    return dropout(x, hyper["dropout"], key)


def encoded(
    parameters: Arrays, x: Array, batch: Arrays, hyper: Hyper, dropouts: Keys, prefix: str = ""
) -> Array:
    """Return (batch, sequence, hidden) after the last layer; ``dropouts`` are DROPOUTS_OF_A_LAYER
    keys for each."""
    epsilon, rate = hyper["layer_norm_epsilon"], hyper["dropout"]
    mask = batch["attention_mask"].astype(bool)[:, None, None, :]  # True: visible to attention
    x = cut(x, hyper)
    for name in (f"{prefix}layers.{layer}" for layer in range(hyper["layers"])):
        y = joined(x, hyper)
        y = _attention(parameters, f"{name}.attention", y, mask, hyper, next(dropouts))
        x = x + dropout(cut(y, hyper), rate, next(dropouts))
        x = layer_norm(parameters, f"{name}.attention_norm", x, epsilon)
        y = gelu(dense(parameters, f"{name}.intermediate", joined(x, hyper)))
        y = cut(dense(parameters, f"{name}.output", y), hyper)
        x = x + dropout(y, rate, next(dropouts))
        x = layer_norm(parameters, f"{name}.output_norm", x, epsilon)
    return joined(x, hyper)


def vocabulary_logits(
    parameters: Arrays, x: Array, positions: Array, hyper: Hyper, prefix: str = ""
) -> Array:
    """Return logits (batch, predictions, vocabulary) of masked ``positions``, by the token
    embedding."""
    masked = jnp.take_along_axis(x, positions[:, :, None], axis=1)
    masked = gelu(dense(parameters, f"{prefix}transform", masked))
    epsilon = hyper["layer_norm_epsilon"]
    masked = layer_norm(parameters, f"{prefix}transform_norm", masked, epsilon)
    tokens = parameters["embeddings.token.weight"].astype(x.dtype)
    logits = jnp.einsum("bph,vh->bpv", masked, tokens)
    return logits + parameters[f"{prefix}decoder_bias"].astype(x.dtype)


class EncoderDefinition(ModelDefinition):
    """Definition of an encoder whose layers can be sharded over ranks: matrices COLUMNS are
    split by columns, ROWS by rows."""

    COLUMNS = ("attention.query", "attention.key", "attention.value", "intermediate")
    ROWS = ("attention.output", "output")


class Definition(EncoderDefinition):
    def weights(self) -> Mapping[str, Weight]:
        return transformers.bert(self.hyper)

    def heads_of(self, hyper: Hyper) -> Dict[str, Sequence[int]]:
        """Return the number of attention heads of a projection."""
        return {f"attention.{kind}": (hyper["heads"],) for kind in ("query", "key", "value")}

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        hyper = self.hyper
        dropouts = keys(key, 1 + DROPOUTS_OF_A_LAYER * hyper["layers"])
        x = embedded(parameters, batch["token_ids"], batch, hyper, dtype, next(dropouts))
        x = encoded(parameters, x, batch, hyper, dropouts)
        if hyper.get("head") == "span":
            return (dense(parameters, "span", x),), statistics
        pooled = jnp.tanh(dense(parameters, "pooler", x[:, 0]))
        if "classes" in hyper:
            return (dense(parameters, "classifier", pooled),), statistics
        logits = vocabulary_logits(parameters, x, batch["masked_positions"], hyper)
        return (logits, dense(parameters, "next_sentence", pooled)), statistics
