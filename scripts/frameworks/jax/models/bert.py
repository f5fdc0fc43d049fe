"""BERT's pre-training: masked language model and next sentence (Devlin et al. 2018,
arXiv:1810.04805). The masked-LM head sees the masked positions alone, as in the authors' code.

A model config with ``classes`` gets SuperBench's head instead. One whose ``head`` is ``span`` finds
where an answer begins and ends, without a pooler, as in the authors' code for SQuAD."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .layers import (
    Arrays,
    attention,
    cross_entropy,
    cut,
    dense,
    dropout,
    hyperparameters,
    joined,
    keys,
    layer_norm,
)

model = hyperparameters  # which the functions below take

DROPOUTS_OF_A_LAYER = 3  # attention probabilities, attention output, feed-forward output

Keys = Iterator[Optional[Array]]

# Sharding of a layer among ranks, see sharded.py.
COLUMNS = ("attention.query", "attention.key", "attention.value", "intermediate")
ROWS = ("attention.output", "output")


def heads_of(hyper: Dict[str, Any]) -> Dict[str, Sequence[int]]:
    """Return the number of attention heads of a projection."""
    return {f"attention.{kind}": (hyper["heads"],) for kind in ("query", "key", "value")}


class Drawing:
    """Initial parameters by name: weights and embeddings are normal with the authors' standard
    deviation, biases zero."""

    def __init__(self, hyper: Dict[str, Any], random: np.random.Generator) -> None:
        self._hyper, self._random = hyper, random
        self.drawn: Dict[str, np.ndarray] = {}

    def weight(self, name: str, *shape: int) -> None:
        deviation = np.float32(self._hyper["initializer_range"])
        drawn = self._random.standard_normal(shape, np.float32) * deviation
        self.drawn[f"{name}.weight"] = drawn

    def linear(self, name: str, inputs: int, outputs: int) -> None:
        self.weight(name, inputs, outputs)
        self.drawn[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(self, name: str, size: int) -> None:
        self.drawn[f"{name}.weight"] = np.ones(size, np.float32)
        self.drawn[f"{name}.bias"] = np.zeros(size, np.float32)

    def embeddings(self) -> None:
        tables = (("token", "vocabulary"), ("position", "positions"), ("segment", "segments"))
        for name, rows in tables:
            self.weight(f"embeddings.{name}", self._hyper[rows], self._hyper["hidden"])
        self.norm("embeddings.norm", self._hyper["hidden"])

    def layers(self, hyper: Dict[str, Any], prefix: str = "") -> None:
        hidden, inner = hyper["hidden"], hyper["intermediate"]
        for layer in (f"{prefix}layers.{number}" for number in range(hyper["layers"])):
            for name in ("query", "key", "value", "output"):
                self.linear(f"{layer}.attention.{name}", hidden, hidden)
            self.norm(f"{layer}.attention_norm", hidden)
            self.linear(f"{layer}.intermediate", hidden, inner)
            self.linear(f"{layer}.output", inner, hidden)
            self.norm(f"{layer}.output_norm", hidden)

    def decoder_bias(self, name: str) -> None:
        """The decoder's weight is the token embedding, its bias is its own."""
        self.drawn[name] = np.zeros(self._hyper["vocabulary"], np.float32)


def parameters(model_config: Dict[str, Any], random: np.random.Generator) -> Dict[str, np.ndarray]:
    hyper = model_config["hyperparameters"]
    hidden = hyper["hidden"]
    drawing = Drawing(hyper, random)
    drawing.embeddings()
    drawing.layers(hyper)
    if hyper.get("head") == "span":
        drawing.linear("span", hidden, 2)
        return drawing.drawn
    drawing.linear("pooler", hidden, hidden)
    if "classes" in hyper:
        drawing.linear("classifier", hidden, hyper["classes"])
        return drawing.drawn
    drawing.linear("transform", hidden, hidden)
    drawing.norm("transform_norm", hidden)
    drawing.decoder_bias("decoder_bias")
    drawing.linear("next_sentence", hidden, 2)
    return drawing.drawn


def _attention(
    parameters: Arrays,
    name: str,
    x: Array,
    mask: Array,
    hyper: Dict[str, Any],
    key: Optional[Array],
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
    parameters: Arrays,
    token_ids: Array,
    batch: Arrays,
    hyper: Dict[str, Any],
    dtype: Any,
    key: Optional[Array],
) -> Array:
    """Return the embeddings of ``token_ids`` (batch, sequence): (batch, sequence, hidden) in
    ``dtype``."""
    x = parameters["embeddings.token.weight"][token_ids]
    x = x + parameters["embeddings.segment.weight"][batch["segment_ids"]]
    x = x + parameters["embeddings.position.weight"][: x.shape[1]]
    x = layer_norm(parameters, "embeddings.norm", x, hyper["layer_norm_epsilon"]).astype(dtype)
    return dropout(x, hyper["dropout"], key)


def encoded(
    parameters: Arrays,
    x: Array,
    batch: Arrays,
    hyper: Dict[str, Any],
    drawn: Keys,
    prefix: str = "",
) -> Array:
    """Return (batch, sequence, hidden) after the last layer; ``drawn`` are DROPOUTS_OF_A_LAYER
    keys for each."""
    epsilon, rate = hyper["layer_norm_epsilon"], hyper["dropout"]
    mask = batch["attention_mask"].astype(bool)[:, None, None, :]  # True: may be attended to
    x = cut(x, hyper)
    for name in (f"{prefix}layers.{layer}" for layer in range(hyper["layers"])):
        y = joined(x, hyper)
        y = _attention(parameters, f"{name}.attention", y, mask, hyper, next(drawn))
        x = x + dropout(cut(y, hyper), rate, next(drawn))
        x = layer_norm(parameters, f"{name}.attention_norm", x, epsilon)
        y = gelu(dense(parameters, f"{name}.intermediate", joined(x, hyper)))
        y = cut(dense(parameters, f"{name}.output", y), hyper)
        x = x + dropout(y, rate, next(drawn))
        x = layer_norm(parameters, f"{name}.output_norm", x, epsilon)
    return joined(x, hyper)


def vocabulary_logits(
    parameters: Arrays, x: Array, positions: Array, hyper: Dict[str, Any], prefix: str = ""
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


def forward(
    parameters: Arrays,
    statistics: Arrays,
    batch: Arrays,
    key: Optional[Array],
    hyper: Dict[str, Any],
    dtype: Any,
    train: bool,
) -> Tuple[Tuple[Array, ...], Arrays]:
    """Return logits of the masked positions (batch, predictions, vocabulary) and of the next
    sentence (batch, 2), or those of the classes alone, or of each token how well an answer begins
    and ends with it (batch, sequence, 2), in ``dtype``. Dropout in training, with masks drawn from
    ``key``."""
    drawn = keys(key if train else None, 1 + DROPOUTS_OF_A_LAYER * hyper["layers"])
    x = embedded(parameters, batch["token_ids"], batch, hyper, dtype, next(drawn))
    x = encoded(parameters, x, batch, hyper, drawn)
    if hyper.get("head") == "span":
        return (dense(parameters, "span", x),), statistics
    pooled = jnp.tanh(dense(parameters, "pooler", x[:, 0]))
    if "classes" in hyper:
        return (dense(parameters, "classifier", pooled),), statistics
    logits = vocabulary_logits(parameters, x, batch["masked_positions"], hyper)
    return (logits, dense(parameters, "next_sentence", pooled)), statistics


def loss(outputs: Tuple[Array, ...], batch: Arrays, hyper: Dict[str, Any]) -> Array:
    """Return the mean cross entropy over the masked positions plus that over the sequences."""
    if "classes" in hyper:
        return cross_entropy(outputs[0], batch["labels"])
    if hyper.get("head") == "span":  # the classes are the tokens
        return cross_entropy(outputs[0].swapaxes(1, 2), batch["spans"])
    logits, next_sentence = outputs
    masked = cross_entropy(logits, batch["masked_labels"])
    return masked + cross_entropy(next_sentence, batch["next_sentence_labels"])
