"""BERT-base pre-training in float64 (Devlin et al. 2018, arXiv:1810.04805): masked language model
and next sentence, exact GELU, normalisation behind each residual, tied embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as np

from reference.operations import Array, cross_entropy, dense, gelu, layer_norm, product, softmax
from reference.weights import Drawn, trainable


def parameters(facts: dict[str, Any]) -> dict[str, Drawn]:
    """Every parameter, and how its value for the comparison is drawn."""
    hyper = facts["hyperparameters"]
    hidden, inner = hyper["hidden"], hyper["intermediate"]
    found: dict[str, Drawn] = {}

    def linear(name: str, cin: int, cout: int, size: float = 1.0) -> None:
        found[f"{name}.weight"] = trainable((cin, cout), size * cin**-0.5)
        found[f"{name}.bias"] = trainable((cout,), 0.1)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = trainable((hidden,), 0.1, 1.0)
        found[f"{name}.bias"] = trainable((hidden,), 0.1)

    for kind, rows in (("token", "vocabulary"), ("position", "positions"), ("segment", "segments")):
        # small, so that the epsilon of the normalisation behind them matters
        found[f"embeddings.{kind}.weight"] = trainable((hyper[rows], hidden), 0.05)
    norm("embeddings.norm")
    for layer in range(hyper["layers"]):
        # Attention that is sharp and adds little: what it mixes must not become the same for all
        # positions, or the gradients of queries and keys would vanish.
        for projection, size in (("query", 1.5), ("key", 1.5), ("value", 1.0), ("output", 0.4)):
            linear(f"layers.{layer}.attention.{projection}", hidden, hidden, size)
        norm(f"layers.{layer}.attention_norm")
        linear(f"layers.{layer}.intermediate", hidden, inner)
        linear(f"layers.{layer}.output", inner, hidden)
        norm(f"layers.{layer}.output_norm")
    linear("transform", hidden, hidden)
    norm("transform_norm")
    found["decoder_bias"] = trainable((hyper["vocabulary"],), 0.1)
    linear("pooler", hidden, hidden)
    linear("next_sentence", hidden, 2)
    return found


def forward(
    weights: dict[str, Array],
    batch: dict[str, Any],
    hyper: dict[str, Any],
    training: bool,
    dropout: Callable[[tuple[int, ...]], Any] | None = None,
) -> list[Array]:
    """Logits of the masked positions (batch, predictions, vocabulary) and of the next sentence
    (batch, 2). ``dropout`` gives factors of a shape, 0 or 1 / (1 - rate); None: no dropout."""
    epsilon, heads = hyper["layer_norm_epsilon"], hyper["heads"]

    def drop(x: Array) -> Array:
        return x if dropout is None or not training else x * dropout(x.shape)

    def norm(x: Array, name: str) -> Array:
        return layer_norm(x, weights, name, epsilon)

    def attention(x: Array, name: str) -> Array:
        query, key, value = (
            np.swapaxes(
                np.reshape(dense(x, weights, f"{name}.{part}"), (*x.shape[:2], heads, -1)), 1, 2
            )
            for part in ("query", "key", "value")
        )
        scores = product(query, np.swapaxes(key, 2, 3)) / np.sqrt(query.shape[-1])
        hidden = (1.0 - batch["attention_mask"])[:, None, None, :]
        context = product(drop(softmax(scores - 1e9 * hidden)), value)
        context = np.reshape(np.swapaxes(context, 1, 2), x.shape)
        return drop(dense(context, weights, f"{name}.output"))

    tokens = weights["embeddings.token.weight"]
    x = tokens[batch["token_ids"]] + weights["embeddings.segment.weight"][batch["segment_ids"]]
    x = x + weights["embeddings.position.weight"][: x.shape[1]]
    x = drop(norm(x, "embeddings.norm"))
    for layer in range(hyper["layers"]):
        name = f"layers.{layer}"
        x = norm(x + attention(x, f"{name}.attention"), f"{name}.attention_norm")
        inner = gelu(dense(x, weights, f"{name}.intermediate"))
        x = norm(x + drop(dense(inner, weights, f"{name}.output")), f"{name}.output_norm")
    masked = x[np.arange(len(x))[:, None], batch["masked_positions"]]
    masked = norm(gelu(dense(masked, weights, "transform")), "transform_norm")
    rows = np.reshape(masked, (-1, masked.shape[-1]))
    words = product(rows, np.transpose(tokens)) + weights["decoder_bias"]
    words = np.reshape(words, (*masked.shape[:2], -1))
    return [words, dense(np.tanh(dense(x[:, 0], weights, "pooler")), weights, "next_sentence")]


def loss(outputs: list[Array], batch: dict[str, Any], hyper: dict[str, Any]) -> Array:
    words, next_sentence = outputs
    masked = cross_entropy(words, batch["masked_labels"])
    return masked + cross_entropy(next_sentence, batch["next_sentence_labels"])
