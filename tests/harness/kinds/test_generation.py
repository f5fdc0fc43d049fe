"""Tokens and logits that continue prompts, compared with those of the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from harness.adapter import Case
from harness.kinds import generate

WORDS, TOKENS = 5, 6
#: Logits of each word's successor; the likeliest successor is the next word.
LOGITS = np.eye(WORDS)[[1, 2, 3, 4, 0]] + np.linspace(0.1, 0.3, WORDS)


class Generator:
    """Continues two prompts, the words 0 and 2, by the ``logits`` of each word's successor.

    ``choose`` returns the words that follow, by logits (batch, words)."""

    def __init__(
        self,
        logits: Any,
        choose: Callable[[Any], Any] = lambda x: x.argmax(-1),
        precision: str = "fp32",
    ) -> None:
        self._logits, self._choose = logits, choose
        self.case = Case("toy", "words", "inference", 1, 1, 2, precision, "none")

    def prefill(self) -> Any:
        return self.decode(np.array([0, 2]))

    def decode(self, tokens: Any = None) -> Any:
        self._now = self._logits[self._last if tokens is None else tokens]
        self._last = self._choose(self._now)
        return self._last

    def following_logits(self) -> Any:
        return self._now

    def to_numpy(self, tensor: Any) -> Any:
        return tensor

    def synchronize(self) -> None:
        pass


class Errors(NamedTuple):
    outputs: float
    of_token: float
    wrong: float
    in_float32: float
    same: str


def errors_of(generator: Any, exact: Any = LOGITS) -> Errors:
    """Return the errors against a reference that continues by the logits ``exact``."""
    reference, tokens, logits = Generator(exact), [], []
    for number in range(TOKENS):
        tokens.append(reference.decode() if number else reference.prefill())
        logits.append(reference.following_logits())
    expected = {"tokens": np.stack(tokens, 1), "logits": np.stack(logits, 1)}
    actual = generate.generation_errors(generator, expected)
    return Errors(*(entry["error"] for entry in actual), actual[2]["where"])


def test_the_same_text_has_no_error() -> None:
    assert errors_of(Generator(LOGITS)) == (0, 0, 0, 0, "12 of 12 tokens are the reference's")


def test_rounding_may_choose_another_token_and_what_follows_it() -> None:
    exact = LOGITS.copy()
    exact[3] = [0.4, 0.1, 0.2, 0.1, 0.4 + 1e-9]
    rounded = exact.copy()
    rounded[3, 0] += 2e-9
    actual = errors_of(Generator(rounded), exact)
    assert actual.outputs < actual.of_token < 1e-8
    assert (actual.wrong, actual.same) == (0, "4 of 12 tokens are the reference's")


def test_a_token_that_the_logits_do_not_prefer_is_wrong() -> None:
    actual = errors_of(Generator(LOGITS, lambda x: x.argsort(-1)[:, -2]))
    assert actual.wrong == 2 + 2 * TOKENS, (
        "the first of each sequence, and all behind the right ones"
    )
    assert actual.outputs == 0


def test_a_token_that_is_not_fed_shows_in_the_logits() -> None:
    class Stuck(Generator):
        def decode(self, tokens: Any = None) -> Any:
            return super().decode(np.array([0, 2]) if tokens is None else tokens)

    assert errors_of(Stuck(LOGITS)).of_token > 0.1
