"""Answers in a text: their best spans, by two scores of each token, and how SQuAD scores them.

Exact match and F1 are those of the official scripts: ``evaluate-v1.1.py`` (Rajpurkar et al. 2016,
arXiv:1606.05250) and ``evaluate-v2.0.py`` (Rajpurkar et al. 2018, arXiv:1806.03822). They are
tested against Hugging Face's transformers 4, which environments of frameworks lack."""

from __future__ import annotations

import collections
import re
import string
from typing import Any, Callable, List, NamedTuple, Sequence, Tuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)  # ASCII punctuation only


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


def normalised(answer: str) -> str:
    """Return text in lower case, without punctuation and articles, with one blank between words.

    Steps are applied in this order."""
    text = "".join(letter for letter in answer.lower() if letter not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> float:
    return float(normalised(prediction) == normalised(answer))


def f1(prediction: str, answer: str, impossible: bool) -> float:
    """F1: Harmonic mean of precision and recall of the words. ``impossible``: as in 2.0, where no
    words are right if and only if there should be none; 1.1 has 0 for them."""
    predicted, expected = normalised(prediction).split(), normalised(answer).split()
    if impossible and not (predicted and expected):
        return float(predicted == expected)
    common = sum((collections.Counter(predicted) & collections.Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def right_answers(answers: Sequence[str], impossible: bool) -> List[str]:
    """Return the answers that count.

    In SQuAD 2.0 an answer without words does not count; a question without any has the empty
    text as its answer."""
    if not impossible:
        return list(answers)
    return [answer for answer in answers if normalised(answer)] or [""]


def score_answer(
    prediction: str, answers: Sequence[str], impossible: bool = False
) -> Tuple[float, float]:
    """Return exact match and F1, each against the answer that gives the most. ``impossible``: as in
    2.0, whose questions may have none."""
    right = right_answers(answers, impossible)

    def most(score: Callable[[str], float]) -> float:
        return max(map(score, right), default=0.0)

    return (
        most(lambda answer: exact_match(prediction, answer)),
        most(lambda answer: f1(prediction, answer, impossible)),
    )
