"""BERT-base pre-training: masked language model and next sentence (Devlin et al. 2018,
arXiv:1810.04805). The masked-LM head sees the masked positions alone, as in the authors' code."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .layers import Arrays, attention, cross_entropy, dense, dropout, keys, layer_norm

DROPOUTS_OF_A_LAYER = 3  # attention probabilities, attention output, feed-forward output


def model(facts: Dict[str, Any]) -> Dict[str, Any]:
    """What the functions below need to know."""
    hyper: Dict[str, Any] = facts["hyperparameters"]
    return hyper


def parameters(facts: Dict[str, Any], random: np.random.Generator) -> Dict[str, np.ndarray]:
    """Weights and embeddings normal with the authors' deviation, biases zero."""
    hyper = facts["hyperparameters"]
    hidden, deviation = hyper["hidden"], np.float32(hyper["initializer_range"])
    drawn: Dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int) -> None:
        drawn[f"{name}.weight"] = random.standard_normal(shape, np.float32) * deviation

    def linear(name: str, inputs: int, outputs: int) -> None:
        weight(name, inputs, outputs)
        drawn[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str) -> None:
        drawn[f"{name}.weight"] = np.ones(hidden, np.float32)
        drawn[f"{name}.bias"] = np.zeros(hidden, np.float32)

    for name, rows in (("token", "vocabulary"), ("position", "positions"), ("segment", "segments")):
        weight(f"embeddings.{name}", hyper[rows], hidden)
    norm("embeddings.norm")
    for layer in range(hyper["layers"]):
        for name in ("query", "key", "value", "output"):
            linear(f"layers.{layer}.attention.{name}", hidden, hidden)
        norm(f"layers.{layer}.attention_norm")
        linear(f"layers.{layer}.intermediate", hidden, hyper["intermediate"])
        linear(f"layers.{layer}.output", hyper["intermediate"], hidden)
        norm(f"layers.{layer}.output_norm")
    linear("transform", hidden, hidden)
    norm("transform_norm")
    # the decoder's weight is the token embedding, its bias is its own
    drawn["decoder_bias"] = np.zeros(hyper["vocabulary"], np.float32)
    linear("pooler", hidden, hidden)
    linear("next_sentence", hidden, 2)
    return drawn


def statistics(facts: Dict[str, Any]) -> Dict[str, np.ndarray]:
    """Layer normalisation keeps none."""
    return {}


def _attention(
    parameters: Arrays,
    name: str,
    x: Array,
    mask: Array,
    hyper: Dict[str, Any],
    key: Optional[Array],
) -> Array:
    """(batch, sequence, hidden) and a mask (batch, 1, 1, sequence) -> (batch, sequence, hidden)."""
    query, key_of_token, value = (
        dense(parameters, f"{name}.{kind}", x).reshape(*x.shape[:2], hyper["heads"], -1)
        for kind in ("query", "key", "value")
    )
    context = attention(query, key_of_token, value, mask, hyper["dropout"], key)
    return dense(parameters, f"{name}.output", context.reshape(x.shape))


def _gelu(x: Array) -> Array:
    return jax.nn.gelu(x, approximate=False)  # with the error function, as in the authors' code


def forward(
    parameters: Arrays,
    statistics: Arrays,
    batch: Arrays,
    key: Optional[Array],
    hyper: Dict[str, Any],
    dtype: Any,
    train: bool,
) -> Tuple[Tuple[Array, ...], Arrays]:
    """Logits of the masked positions (batch, predictions, vocabulary) and of the next sentence
    (batch, 2), in ``dtype``. Dropout in training, with masks drawn from ``key``."""
    epsilon, rate = hyper["layer_norm_epsilon"], hyper["dropout"]
    drawn = keys(key if train else None, 1 + DROPOUTS_OF_A_LAYER * hyper["layers"])
    tokens = parameters["embeddings.token.weight"]
    x = tokens[batch["token_ids"]]
    x = x + parameters["embeddings.segment.weight"][batch["segment_ids"]]
    x = x + parameters["embeddings.position.weight"][: x.shape[1]]
    x = layer_norm(parameters, "embeddings.norm", x, epsilon).astype(dtype)
    x = dropout(x, rate, next(drawn))
    mask = batch["attention_mask"].astype(bool)[:, None, None, :]  # True: may be attended to
    for layer in range(hyper["layers"]):
        name = f"layers.{layer}"
        y = _attention(parameters, f"{name}.attention", x, mask, hyper, next(drawn))
        x = x + dropout(y, rate, next(drawn))
        x = layer_norm(parameters, f"{name}.attention_norm", x, epsilon)
        y = dense(parameters, f"{name}.output", _gelu(dense(parameters, f"{name}.intermediate", x)))
        x = x + dropout(y, rate, next(drawn))
        x = layer_norm(parameters, f"{name}.output_norm", x, epsilon)
    masked = jnp.take_along_axis(x, batch["masked_positions"][:, :, None], axis=1)
    masked = _gelu(dense(parameters, "transform", masked))
    masked = layer_norm(parameters, "transform_norm", masked, epsilon)
    words = jnp.einsum("bph,vh->bpv", masked, tokens.astype(dtype))
    words = words + parameters["decoder_bias"].astype(dtype)
    pooled = jnp.tanh(dense(parameters, "pooler", x[:, 0]))
    return (words, dense(parameters, "next_sentence", pooled)), statistics


def loss(outputs: Tuple[Array, ...], batch: Arrays, hyper: Dict[str, Any]) -> Array:
    """Mean cross entropy over the masked positions plus that over the sequences."""
    words, next_sentence = outputs
    masked = cross_entropy(words, batch["masked_labels"])
    return masked + cross_entropy(next_sentence, batch["next_sentence_labels"])
