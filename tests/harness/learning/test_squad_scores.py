"""SQuAD's exact match and F1 equal those of a maintained implementation of the official metric."""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest
from tasks.reading import answers

#: Words of answers: articles alone and within words, ASCII and other punctuation, letters whose
#: lower case has another length, non-ASCII blanks.
WORDS = (
    *("the", "a", "An", "THE", "theatre", "another", "Denver", "Broncos", "24", "24,000", "1990s"),
    *("U.S.", "co-op", "O'Neil", "-", "...", "«the»", "a\u2019s", "İstanbul", "ß", "naïve", "東京"),
    *("the-end", "$", "%", "x\u00a0y", "Σίσυφος", "(a)", "an,"),
)
CHOSEN = (
    ("", ""),
    ("the", ""),
    ("", "a"),
    ("a the an", "..."),
    ("Denver Broncos", "The Denver Broncos."),
    ("Broncos Denver", "Denver Broncos"),
    ("Denver Denver", "Denver"),
    ("cat", "dog"),
)


@pytest.fixture(scope="module")
def squad_metrics() -> Any:
    """Import the maintained implementation, which takes seconds, for these tests only."""
    return importlib.import_module("transformers.data.metrics.squad_metrics")


def text(chance: random.Random) -> str:
    blank = chance.choice((" ", "  ", "\t", "\n", ""))
    return blank.join(chance.choices(WORDS, k=chance.randrange(5)))


def test_a_pair_scores_as_there(squad_metrics: Any) -> None:
    chance = random.Random(0)
    pairs = [*CHOSEN, *((text(chance), text(chance)) for _ in range(5000))]
    assert len({squad_metrics.compute_f1(first, second) for first, second in pairs}) > 5
    for prediction, answer in pairs:
        exact = squad_metrics.compute_exact(answer, prediction)
        assert answers.exact_match(prediction, answer) == exact, (prediction, answer)
        f1 = squad_metrics.compute_f1(answer, prediction)
        assert answers.f1(prediction, answer, impossible=True) == f1, (prediction, answer)
