"""BERT in float64 (Devlin et al. 2018, arXiv:1810.04805): exact GELU, normalisation after each
residual.

By default its pre-training: masked language model and next sentence, with tied embeddings. The
masked-LM head sees the masked positions alone, as in the authors' code. With ``classes`` in the
model config, SuperBench's linear head on the pooled output. Where ``head`` is ``span``, a linear
layer on each token finds where an answer begins and ends, without a pooler."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np
from networks import transformers

from reference.operations import Array, cross_entropy, dense, gelu, layer_norm, matmul
from reference.transformers import Drop, Dropout, attention, chained, drawn, dropping
from reference.weights import Arrays, Drawn, Hyper

#: Factors of weights that make attention sharp and small. Otherwise all positions would become
#: alike, and the gradients of queries and keys would vanish.
FACTORS = {"attention.query": 1.5, "attention.key": 1.5, "attention.output": 0.4}


def parameters(model_config: dict[str, Any]) -> dict[str, Drawn]:
    """Return every parameter, and how its value for the comparison is drawn."""
    return drawn(transformers.bert(model_config["hyperparameters"]), FACTORS)


def embedded(token_ids: Array, weights: Arrays, batch: Arrays, hyper: Hyper, drop: Drop) -> Array:
    """Map (batch, sequence) to (batch, sequence, hidden)."""
    x = weights["embeddings.token.weight"][token_ids]
    x = x + weights["embeddings.segment.weight"][batch["segment_ids"]]
    x = x + weights["embeddings.position.weight"][: x.shape[1]]
    return drop(layer_norm(x, weights, "embeddings.norm", hyper["layer_norm_epsilon"]))


def encoded(
    x: Array, weights: Arrays, batch: Arrays, hyper: Hyper, drop: Drop, prefix: str = ""
) -> Array:
    """Return (batch, sequence, hidden) after the last layer."""
    epsilon, heads = hyper["layer_norm_epsilon"], hyper["heads"]
    hidden = (1.0 - batch["attention_mask"])[:, None, :]

    def attended(x: Array, weights: Arrays, name: str) -> Array:
        parts = (dense(x, weights, f"{name}.{part}") for part in ("query", "key", "value"))
        by_head = (np.reshape(part, (*x.shape[:2], heads, -1)) for part in parts)
        query, key, value = (np.swapaxes(part, 1, 2) for part in by_head)
        context = attention(query, key, value, hidden, drop)
        context = np.reshape(np.swapaxes(context, 1, 2), x.shape)
        return drop(dense(context, weights, f"{name}.output"))

    def layer(x: Array, weights: Arrays, name: str) -> Array:
        x = x + attended(x, weights, f"{name}.attention")
        x = layer_norm(x, weights, f"{name}.attention_norm", epsilon)
        inner = gelu(dense(x, weights, f"{name}.intermediate"))
        x = x + drop(dense(inner, weights, f"{name}.output"))
        return layer_norm(x, weights, f"{name}.output_norm", epsilon)

    names = (f"{prefix}layers.{number}" for number in range(hyper["layers"]))
    return chained(layer, x, weights, names, drop)


def vocabulary_logits(
    x: Array, weights: Arrays, hyper: Hyper, positions: Array, prefix: str = ""
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
    weights: Arrays, batch: Arrays, hyper: Hyper, training: bool, dropout: Dropout | None = None
) -> list[Array]:
    """Return logits of the masked positions (batch, predictions, vocabulary) and of the next
    sentence (batch, 2); or of the classes (batch, classes); or scores of each token as beginning
    and as end of the answer (batch, sequence, 2). ``dropout``: None for no dropout."""
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


def loss(outputs: list[Array], batch: Arrays, hyper: Hyper) -> Array:
    if "classes" in hyper:
        return cross_entropy(outputs[0], batch["labels"])
    if hyper.get("head") == "span":  # begin and end are classified over the tokens
        return cross_entropy(np.swapaxes(outputs[0], 1, 2), batch["spans"])
    logits, next_sentence = outputs
    masked = cross_entropy(logits, batch["masked_labels"])
    return masked + cross_entropy(next_sentence, batch["next_sentence_labels"])
