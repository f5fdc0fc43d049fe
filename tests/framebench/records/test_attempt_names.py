"""Names of attempts give back the original name and the number of the attempt."""

from __future__ import annotations

import pytest
from framebench.files.attempt_names import attempt_name, repeat_and_attempt, split_attempt


@pytest.mark.parametrize("name", ["r1", "b8", "train-amp-1n1g-b2-0123abcd"])
@pytest.mark.parametrize("attempt", [0, 1, 12])
def test_a_name_tells_what_it_is_an_attempt_of(name: str, attempt: int) -> None:
    assert split_attempt(attempt_name(name, attempt)) == (name, attempt)


def test_what_only_looks_like_an_attempt_is_a_name() -> None:
    assert split_attempt("a-retrying") == ("a-retrying", 0)
    assert split_attempt("a-retry1-retry2") == ("a-retry1", 2)


@pytest.mark.parametrize(
    ("stem", "expected"),
    [("r3", (3, 0)), ("r3-retry2", (3, 2)), ("b3-retry2", None), ("r3-retryx", None), ("r", None)],
)
def test_a_record_of_a_run_is_known_by_its_name(
    stem: str, expected: tuple[int, int] | None
) -> None:
    assert repeat_and_attempt(stem) == expected
