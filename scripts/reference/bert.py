"""BERT in float64 (Devlin et al. 2018, arXiv:1810.04805): exact GELU, normalisation after each
residual.

By default its pre-training: masked language model and next sentence, with tied embeddings. With
``classes`` in the model config, SuperBench's linear head on the pooled output. Where ``head`` is
``span``, a linear layer on each token finds where an answer begins and ends, without a pooler."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np

from reference.operations import Array, cross_entropy, dense, gelu, layer_norm, matmul
from reference.transformers import Drop, Dropout, attention, chained, dropping
from reference.weights import Drawn, trainable


def linear(name: str, cin: int, cout: int, size: float = 1.0) -> dict[str, Drawn]:
    weight = trainable((cin, cout), size * cin**-0.5)
    return {f"{name}.weight": weight, f"{name}.bias": trainable((cout,), 0.1)}


def norm(name: str, size: int, mean: float = 1.0) -> dict[str, Drawn]:
    weight = trainable((size,), 0.1 * mean, mean)
    return {f"{name}.weight": weight, f"{name}.bias": trainable((size,), 0.1)}


def embeddings(hyper: dict[str, Any]) -> dict[str, Drawn]:
    """Return the embeddings, small, so that the epsilon of the normalisation after them matters."""
    tables = (("token", "vocabulary"), ("position", "positions"), ("segment", "segments"))
    parameters = {
        f"embeddings.{kind}.weight": trainable((hyper[rows], hyper["hidden"]), 0.05)
        for kind, rows in tables
    }
    return {**parameters, **norm("embeddings.norm", hyper["hidden"])}


def layers(hyper: dict[str, Any], prefix: str = "") -> dict[str, Drawn]:
    hidden, inner = hyper["hidden"], hyper["intermediate"]
    parameters: dict[str, Drawn] = {}
    for name in (f"{prefix}layers.{layer}" for layer in range(hyper["layers"])):
        # Attention that is sharp and adds little: what it mixes must not become the same for all
        # positions, or the gradients of queries and keys would vanish.
        for projection, size in (("query", 1.5), ("key", 1.5), ("value", 1.0), ("output", 0.4)):
            parameters.update(linear(f"{name}.attention.{projection}", hidden, hidden, size))
        parameters.update(norm(f"{name}.attention_norm", hidden))
        parameters.update(linear(f"{name}.intermediate", hidden, inner))
        parameters.update(linear(f"{name}.output", inner, hidden))
        parameters.update(norm(f"{name}.output_norm", hidden))
    return parameters


def parameters(model_config: dict[str, Any]) -> dict[str, Drawn]:
    """Return every parameter, and how its value for the comparison is drawn."""
    hyper = model_config["hyperparameters"]
    hidden = hyper["hidden"]
    encoder = {**embeddings(hyper), **layers(hyper)}
    if hyper.get("head") == "span":
        return {**encoder, **linear("span", hidden, 2)}
    body = {**encoder, **linear("pooler", hidden, hidden)}
    if "classes" in hyper:
        return {**body, **linear("classifier", hidden, hyper["classes"])}
    return {
        **body,
        **linear("transform", hidden, hidden),
        **norm("transform_norm", hidden),
        "decoder_bias": trainable((hyper["vocabulary"],), 0.1),
        **linear("next_sentence", hidden, 2),
    }


def embedded(
    token_ids: Array,
    weights: dict[str, Array],
    batch: dict[str, Any],
    hyper: dict[str, Any],
    drop: Drop,
) -> Array:
    """Map (batch, sequence) to (batch, sequence, hidden)."""
    x = weights["embeddings.token.weight"][token_ids]
    x = x + weights["embeddings.segment.weight"][batch["segment_ids"]]
    x = x + weights["embeddings.position.weight"][: x.shape[1]]
    return drop(layer_norm(x, weights, "embeddings.norm", hyper["layer_norm_epsilon"]))


def encoded(
    x: Array,
    weights: dict[str, Array],
    batch: dict[str, Any],
    hyper: dict[str, Any],
    drop: Drop,
    prefix: str = "",
) -> Array:
    """Return (batch, sequence, hidden) after the last layer."""
    epsilon, heads = hyper["layer_norm_epsilon"], hyper["heads"]
    hidden = (1.0 - batch["attention_mask"])[:, None, :]

    def attended(x: Array, weights: dict[str, Array], name: str) -> Array:
        query, key, value = (
            np.swapaxes(
                np.reshape(dense(x, weights, f"{name}.{part}"), (*x.shape[:2], heads, -1)), 1, 2
            )
            for part in ("query", "key", "value")
        )
        context = attention(query, key, value, hidden, drop)
        context = np.reshape(np.swapaxes(context, 1, 2), x.shape)
        return drop(dense(context, weights, f"{name}.output"))

    def layer(x: Array, weights: dict[str, Array], name: str) -> Array:
        x = x + attended(x, weights, f"{name}.attention")
        x = layer_norm(x, weights, f"{name}.attention_norm", epsilon)
        inner = gelu(dense(x, weights, f"{name}.intermediate"))
        x = x + drop(dense(inner, weights, f"{name}.output"))
        return layer_norm(x, weights, f"{name}.output_norm", epsilon)

    names = (f"{prefix}layers.{number}" for number in range(hyper["layers"]))
    return chained(layer, x, weights, names, drop)


def vocabulary_logits(
    x: Array, weights: dict[str, Array], hyper: dict[str, Any], positions: Array, prefix: str = ""
) -> Array:
    """Return logits (batch, predictions, vocabulary) of masked ``positions``, by the token
    embedding."""
    masked = x[np.arange(len(x))[:, None], positions]
    masked = gelu(dense(masked, weights, f"{prefix}transform"))
    epsilon = hyper["layer_norm_epsilon"]
    masked = layer_norm(masked, weights, f"{prefix}transform_norm", epsilon)
    rows = np.reshape(masked, (-1, masked.shape[-1]))
    logits = matmul(rows, np.transpose(weights["embeddings.token.weight"]))
    logits = logits + weights[f"{prefix}decoder_bias"]
    return np.reshape(logits, (*masked.shape[:2], -1))


def forward(
    weights: dict[str, Array],
    batch: dict[str, Any],
    hyper: dict[str, Any],
    training: bool,
    dropout: Dropout | None = None,
) -> list[Array]:
    """Return logits of the masked positions (batch, predictions, vocabulary) and of the next
    sentence (batch, 2); or those of the classes alone; or of each token how well an answer begins
    and ends with it (batch, sequence, 2). ``dropout``: None for no dropout."""
    drop = dropping(training, dropout, hyper)
    x = embedded(batch["token_ids"], weights, batch, hyper, drop)
    x = encoded(x, weights, batch, hyper, drop)
    if hyper.get("head") == "span":
        return [dense(x, weights, "span")]
    pooled = np.tanh(dense(x[:, 0], weights, "pooler"))
    if "classes" in hyper:
        return [dense(pooled, weights, "classifier")]
    logits = vocabulary_logits(x, weights, hyper, batch["masked_positions"])
    return [logits, dense(pooled, weights, "next_sentence")]


def loss(outputs: list[Array], batch: dict[str, Any], hyper: dict[str, Any]) -> Array:
    if "classes" in hyper:
        return cross_entropy(outputs[0], batch["labels"])
    if hyper.get("head") == "span":  # the classes are the tokens
        return cross_entropy(np.swapaxes(outputs[0], 1, 2), batch["spans"])
    logits, next_sentence = outputs
    masked = cross_entropy(logits, batch["masked_labels"])
    return masked + cross_entropy(next_sentence, batch["next_sentence_labels"])
