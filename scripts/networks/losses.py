"""The cross-entropies that the models learn by; ELECTRA alone has another loss."""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, List, Mapping, Sequence

#: Function of logits (.., classes) and labels, which are class indices (..) or, for images, also
#: probabilities (batch, classes). Returns the mean cross-entropy, or a vector of all
#: cross-entropies.
CrossEntropy = Callable[[Any, Any], Any]


def loss_parts(
    outputs: Sequence[Any],
    batch: Mapping[str, Any],
    hyper: Mapping[str, Any],
    cross_entropy: CrossEntropy,
    swap: Callable[[Any], Any],
) -> List[Any]:
    """Return the terms of a model's loss. ``swap`` exchanges the last two axes of an array
    of three."""
    if "spans" in batch:  # begin and end are classified over the tokens
        return [cross_entropy(swap(outputs[0]), batch["spans"])]
    if "masked_labels" in batch:
        tokens, next_sentence = outputs
        masked = cross_entropy(tokens, batch["masked_labels"])
        return [masked, cross_entropy(next_sentence, batch["next_sentence_labels"])]
    (logits, *heads), labels = outputs, batch["labels"]
    if "tied" in hyper and "classes" in hyper:  # a decoder classifies by the last token
        logits = logits[:, -1]
    parts = [cross_entropy(logits, labels)]
    return parts + [hyper["auxiliary_weight"] * cross_entropy(head, labels) for head in heads]


def total_loss(*arguments: Any) -> Any:
    """Return the sum of :func:`loss_parts`."""
    return functools.reduce(operator.add, loss_parts(*arguments))
