"""Matmuls of a step from the model config: shapes, counts and multiply-adds.

Together they are all operations that the model config counts. A matmul of (m, k) by (k, n) has two
in the backward pass: the gradient of the first operand is (m, n) by (n, k), that of the second (k,
m) by (m, n)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from core.matmuls import MatmulShape

#: Name of the benchmark.
KIND = "matmul"


#: Pairs of a shape and its count per forward pass.
Counted = Iterator[tuple[MatmulShape, int]]


def of_step(
    model_config: Mapping[str, Any],
    batch: int,
    length: int | None,
    trains: bool,
    attention: bool = True,
) -> Counter[MatmulShape]:
    """Return the count of each shape in a step of ``batch`` samples of ``length`` tokens.

    Empty for models with unknown matmuls. ``attention``: include the two matmuls per head."""
    results: Counter[MatmulShape] = Counter()
    definition = _DEFINITIONS.get(str(model_config.get("definition")))
    if definition is None or length is None:
        return results
    hyper = model_config["hyperparameters"]
    for shape, count in (
        *definition(hyper, batch, length),
        *(_attention(hyper, batch, length) if attention else ()),
    ):
        for entry in (shape, *(shape.backward if trains else ())):
            results[entry] += count
    return results


def _layers(hyper: Mapping[str, Any], batch: int, length: int, widenings: int) -> Counted:
    """Yield the matmuls of all layers, without attention scores.

    ``widenings``: matmuls from the hidden to the intermediate width, per layer."""
    hidden, inner, layers = hyper["hidden"], hyper["intermediate"], hyper["layers"]
    shared = hidden // hyper["heads"] * hyper.get("key_value_heads", hyper["heads"])
    tokens = batch * length
    yield MatmulShape(1, tokens, hidden, hidden), 2 * layers  # queries and attention output
    yield MatmulShape(1, tokens, hidden, shared), 2 * layers  # keys and values
    yield MatmulShape(1, tokens, hidden, inner), widenings * layers
    yield MatmulShape(1, tokens, inner, hidden), layers


def _attention(hyper: Mapping[str, Any], batch: int, length: int) -> Counted:
    """Yield the matmuls of each head: scores, and weighted values."""
    heads, size = hyper["heads"], hyper["hidden"] // hyper["heads"]
    yield MatmulShape(batch * heads, length, size, length), hyper["layers"]
    yield MatmulShape(batch * heads, length, length, size), hyper["layers"]


def _bert(hyper: Mapping[str, Any], batch: int, length: int) -> Counted:
    hidden = hyper["hidden"]
    yield from _layers(hyper, batch, length, 1)
    if hyper.get("head") == "span":
        yield MatmulShape(1, batch * length, hidden, 2), 1  # start and end of an answer
        return
    yield MatmulShape(1, batch, hidden, hidden), 1  # pooler of the first token
    if "classes" in hyper:
        yield MatmulShape(1, batch, hidden, hyper["classes"]), 1
        return
    predictions = batch * max(1, round(20 * length / 128))
    yield MatmulShape(1, predictions, hidden, hidden), 1
    yield MatmulShape(1, predictions, hidden, hyper["vocabulary"]), 1
    yield MatmulShape(1, batch, hidden, 2), 1  # next-sentence prediction


def _decoder(hyper: Mapping[str, Any], batch: int, length: int) -> Counted:
    yield from _layers(hyper, batch, length, 2 if hyper["activation"] == "swiglu" else 1)
    logits = hyper.get("classes", hyper["vocabulary"])
    yield MatmulShape(1, batch * length, hyper["hidden"], logits), 1


_DEFINITIONS: Mapping[str, Callable[[Mapping[str, Any], int, int], Counted]] = {
    "bert": _bert,
    "decoder": _decoder,
}
