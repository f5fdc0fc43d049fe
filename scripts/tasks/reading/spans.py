"""Best spans of answers, by two scores of each token."""

from __future__ import annotations

from typing import Any, NamedTuple


class Best(NamedTuple):
    """Best span of each sample, (samples,): first token, last token and the sum of their scores.

    The sum is minus infinity where no token is allowed."""

    first: Any
    last: Any
    value: Any


def best(scores: Any, allowed: Any, longest: int) -> Best:
    """Return the span with the largest sum of both scores, of up to ``longest`` tokens.

    It begins and ends with an allowed token; of equal spans a shorter one is taken. ``scores``:
    (samples, tokens, 2); ``allowed``: bool (samples, tokens)."""
    import numpy as np

    begin, end = (np.where(allowed, scores[:, :, side], -np.inf) for side in range(2))
    samples, tokens = allowed.shape
    rows = np.arange(samples)
    best_so_far = Best(np.zeros(samples, int), np.zeros(samples, int), np.full(samples, -np.inf))
    for more in range(min(longest, tokens)):
        sums = begin[:, : tokens - more] + end[:, more:]
        first = sums.argmax(axis=1)
        value = sums[rows, first]
        better = value > best_so_far.value
        chosen = Best(first, first + more, value)
        best_so_far = Best(*(np.where(better, new, old) for new, old in zip(chosen, best_so_far)))
    return best_so_far


def loss(scores: Any, spans: Any) -> Any:
    """Return the loss of each sample, (samples,): the mean of the cross-entropies of first and last
    token. ``scores``: (samples, tokens, 2); ``spans``: the correct positions, (samples, 2)."""
    import numpy as np

    shifted = scores - scores.max(axis=1, keepdims=True)
    right = np.take_along_axis(shifted, spans[:, None, :], axis=1)[:, 0]
    return (np.log(np.exp(shifted).sum(axis=1)) - right).mean(axis=1)
