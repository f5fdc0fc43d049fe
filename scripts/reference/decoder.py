"""Causal language models in float64: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023,
arXiv:2302.13971; grouped queries as in Llama 3, arXiv:2407.21783). Normalisation before each
residual branch. The model config tells them apart: ``norm`` (``layer`` or ``rms``), ``position``
(``learned`` or ``rotary``), ``activation`` (``gelu_tanh`` or ``swiglu``), ``bias``, ``tied``. A
model config with ``classes`` is SuperBench's GPT-2: a linear head with that many outputs on every
position; the loss uses the last position."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np
import numpy
from networks import transformers

from reference.operations import (
    Array,
    cross_entropy,
    dense,
    gelu_tanh,
    layer_norm,
    matmul,
    rms_norm,
    rotated,
    silu,
)
from reference.transformers import Dropout, attention, chained, drawn, dropping
from reference.weights import Arrays, Drawn, Hyper


def parameters(model_config: dict[str, Any]) -> dict[str, Drawn]:
    """Return every parameter, and how its value for the comparison is drawn."""
    hyper = model_config["hyperparameters"]
    # sharp attention that adds little, and a small classification head, because the gradient of a
    # single position is large
    factors = {"query_key_value": 1.5, "attention.output": 0.4, "head": 0.2}
    return drawn(
        transformers.decoder(hyper), factors if "classes" in hyper else {**factors, "head": 1.0}
    )


def forward(
    weights: Arrays, batch: Arrays, hyper: Hyper, training: bool, dropout: Dropout | None = None
) -> list[Array]:
    """Return logits (batch, sequence, vocabulary or classes). ``dropout``: None for no dropout."""
    heads, groups = hyper["heads"], hyper["key_value_heads"]
    tokens = batch["token_ids"]
    length = tokens.shape[1]
    # later positions, which a position must not see
    later = numpy.triu(numpy.ones((length, length)), 1)
    drop = dropping(training, dropout, hyper)

    def norm(x: Array, weights: Arrays, name: str) -> Array:
        normalise = layer_norm if hyper["norm"] == "layer" else rms_norm
        return normalise(x, weights, name, hyper["norm_epsilon"])

    def attended(x: Array, weights: Arrays, name: str) -> Array:
        rows, columns = x.shape[0], x.shape[2]
        every = dense(x, weights, f"{name}.query_key_value")
        every = np.reshape(every, (rows, length, heads + 2 * groups, columns // heads))
        every = np.transpose(every, (0, 2, 1, 3))  # batch, heads, sequence, size
        query, key = every[:, :heads], every[:, heads : heads + groups]
        value = every[:, heads + groups :]
        if hyper["position"] == "rotary":
            query, key = (rotated(x, hyper["rotary_base"]) for x in (query, key))
        context = attention(query, key, value, later[None], drop)
        context = np.reshape(np.transpose(context, (0, 2, 1, 3)), x.shape)
        return drop(dense(context, weights, f"{name}.output"))

    def feed_forward(x: Array, weights: Arrays, name: str) -> Array:
        up = dense(x, weights, f"{name}.up")
        if hyper["activation"] == "swiglu":
            inner = silu(dense(x, weights, f"{name}.gate")) * up
        else:
            inner = gelu_tanh(up)
        return drop(dense(inner, weights, f"{name}.down"))

    def layer(x: Array, weights: Arrays, name: str) -> Array:
        normal = norm(x, weights, f"{name}.attention_norm")
        x = x + attended(normal, weights, f"{name}.attention")
        normal = norm(x, weights, f"{name}.feed_forward_norm")
        return x + feed_forward(normal, weights, f"{name}.feed_forward")

    embeddings = weights["embeddings.token.weight"]
    x = embeddings[tokens]
    if hyper["position"] == "learned":
        x = x + weights["embeddings.position.weight"][:length]
    x = drop(x)
    names = (f"layers.{number}" for number in range(hyper["layers"]))
    x = chained(layer, x, weights, names, drop)
    x = norm(x, weights, "norm")
    if not hyper["tied"]:
        return [dense(x, weights, "head")]
    logits = matmul(np.reshape(x, (-1, x.shape[-1])), np.transpose(embeddings))
    return [np.reshape(logits, (*x.shape[:2], -1))]


def loss(outputs: list[Array], batch: Arrays, hyper: Hyper) -> Array:
    logits = outputs[0][:, -1] if "classes" in hyper else outputs[0]
    return cross_entropy(logits, batch["labels"])


def continued(weights: Arrays, prompts: Any, hyper: Hyper, count: int) -> tuple[Array, Array]:
    """Return the ``count`` likeliest tokens after each of ``prompts`` (batch, sequence), (batch,
    count), and their logits (batch, count, vocabulary).

    Each token takes a pass over the whole sequence, without a cache."""
    tokens, chosen_by = prompts, []
    for _ in range(count):
        (logits,) = forward(weights, {"token_ids": tokens}, hyper, False)
        chosen_by.append(logits[:, -1])
        tokens = numpy.concatenate([tokens, chosen_by[-1].argmax(-1)[:, None]], axis=1)
    return tokens[:, prompts.shape[1] :], numpy.stack(chosen_by, axis=1)
