"""The matrix products of a step, from the facts of its model: which shapes, how often, and how many
multiply-adds. Together they are all that the facts count.

A product of (m, k) by (k, n) has two others in the backward pass: the gradient of its first operand
is one of (m, n) by (n, k), that of its second one of (k, m) by (m, n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

#: The kind that measures them.
KIND = "matmul"


class MatmulShape(NamedTuple):
    """(m, k) by (k, n), ``batch`` times; its fields are what the kind calls a point by."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def multiply_adds(self) -> int:
        return self.batch * self.m * self.k * self.n

    @property
    def backward(self) -> tuple[MatmulShape, MatmulShape]:
        return self._replace(k=self.n, n=self.k), self._replace(m=self.k, k=self.m)

    def __str__(self) -> str:
        """As a suite has it."""
        return "x".join(map(str, self[1:] if self.batch == 1 else self))


#: How often a forward pass has a shape.
Counted = Iterator[tuple[MatmulShape, int]]


def of_step(
    facts: Mapping[str, Any], batch: int, length: int | None, trains: bool, attention: bool = True
) -> Counter[MatmulShape]:
    """How often each shape is in a step of ``batch`` samples of ``length`` tokens; empty for a
    model whose products are not known. ``attention``: with the two products of each head."""
    found: Counter[MatmulShape] = Counter()
    definition = _DEFINITIONS.get(str(facts.get("definition")))
    if definition is None or length is None:
        return found
    hyper = facts["hyperparameters"]
    for shape, count in (
        *definition(hyper, batch, length),
        *(_attention(hyper, batch, length) if attention else ()),
    ):
        for one in (shape, *(shape.backward if trains else ())):
            found[one] += count
    return found


def multiply_adds(products: Mapping[MatmulShape, int]) -> int:
    return sum(shape.multiply_adds * count for shape, count in products.items())


def _layers(hyper: Mapping[str, Any], batch: int, length: int, widenings: int) -> Counted:
    """Of all layers. ``widenings``: products from the width to that between the two of a layer's
    network, and one back."""
    hidden, inner, layers = hyper["hidden"], hyper["intermediate"], hyper["layers"]
    shared = hidden // hyper["heads"] * hyper.get("key_value_heads", hyper["heads"])
    tokens = batch * length
    yield MatmulShape(1, tokens, hidden, hidden), 2 * layers  # queries, and what attention puts out
    yield MatmulShape(1, tokens, hidden, shared), 2 * layers  # keys and values
    yield MatmulShape(1, tokens, hidden, inner), widenings * layers
    yield MatmulShape(1, tokens, inner, hidden), layers


def _attention(hyper: Mapping[str, Any], batch: int, length: int) -> Counted:
    """Scores, and what they weigh, of each head."""
    heads, size = hyper["heads"], hyper["hidden"] // hyper["heads"]
    yield MatmulShape(batch * heads, length, size, length), hyper["layers"]
    yield MatmulShape(batch * heads, length, length, size), hyper["layers"]


def _bert(hyper: Mapping[str, Any], batch: int, length: int) -> Counted:
    hidden = hyper["hidden"]
    yield from _layers(hyper, batch, length, 1)
    if hyper.get("head") == "span":
        yield MatmulShape(1, batch * length, hidden, 2), 1  # where an answer begins and ends
        return
    yield MatmulShape(1, batch, hidden, hidden), 1  # of the first token
    if "classes" in hyper:
        yield MatmulShape(1, batch, hidden, hyper["classes"]), 1
        return
    predictions = batch * max(1, round(20 * length / 128))
    yield MatmulShape(1, predictions, hidden, hidden), 1
    yield MatmulShape(1, predictions, hidden, hyper["vocabulary"]), 1
    yield MatmulShape(1, batch, hidden, 2), 1  # whether one sentence follows the other


def _decoder(hyper: Mapping[str, Any], batch: int, length: int) -> Counted:
    yield from _layers(hyper, batch, length, 2 if hyper["activation"] == "swiglu" else 1)
    logits = hyper.get("classes", hyper["vocabulary"])
    yield MatmulShape(1, batch * length, hyper["hidden"], logits), 1


_DEFINITIONS: Mapping[str, Callable[[Mapping[str, Any], int, int], Counted]] = {
    "bert": _bert,
    "decoder": _decoder,
}
