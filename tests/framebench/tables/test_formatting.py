"""Numbers as text for people: digits, exponents, closing zeros."""

from __future__ import annotations

import pytest
from framebench.tables.formatting import figure, number, rounded


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (6.8199, "6.82"),
        (0.03711, "0.0371"),
        (1234.5, "1234"),
        (64.0, "64"),
        (99.96, "100.0"),
        (0.0, "0"),
    ],
)
def test_figures_have_three_digits(value: float, shown: str) -> None:
    assert figure(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.5, "2.5"), (100.04, "100"), (123456.7, "123457"), (0.00012345, "0.0001234"), (0.0, "0")],
)
def test_numbers_have_four_digits_and_no_closing_zeros(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [
        (1234.5, "#.4g", "1234"),
        (54.0, "#.4g", "54.00"),
        (123456.0, ".3g", "123456"),
        (1.5e9, ".3g", "1.5e+09"),
        (2.0, ".1f", "2.0"),
    ],
)
def test_there_is_no_exponent_below_ten_millions(value: float, spec: str, shown: str) -> None:
    assert rounded(value, spec) == shown
