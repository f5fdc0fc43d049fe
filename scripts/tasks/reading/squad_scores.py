"""Exact match and F1 as the official scripts of SQuAD define them: ``evaluate-v1.1.py``
(Rajpurkar et al. 2016, arXiv:1606.05250) and ``evaluate-v2.0.py`` (Rajpurkar et al. 2018,
arXiv:1806.03822). Ranks run in the frameworks' environments, where no implementation of it is; what
is here is tested against that of Hugging Face's transformers 4."""

from __future__ import annotations

import collections
import re
import string
from typing import Callable, List, Sequence, Tuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)  # that of ASCII alone


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


def of_question(
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
