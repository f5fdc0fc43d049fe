"""Numbers as text for people: digits, exponents, closing zeros."""

from __future__ import annotations

import pytest
from framebench.tables.formatting import figure, number, rounded


def test_figures_have_three_digits_or_all_before_the_point() -> None:
    values = (6.8199, 0.03711, 1234.5, 64.0, 99.96, 0.0)
    assert [figure(value) for value in values] == ["6.82", "0.0371", "1234", "64", "100.0", "0"]


def test_numbers_have_four_digits_and_no_closing_zeros() -> None:
    values = (2.5, 100.04, 123456.7, 0.00012345, 0.0)
    assert [number(value) for value in values] == ["2.5", "100", "123457", "0.0001234", "0"]


@pytest.mark.parametrize(
    ("value", "spec", "shown"), [(54.0, "#.4g", "54.00"), (123456.0, ".3g", "123456"),
                                 (1.5e9, ".3g", "1.5e+09"), (2.0, ".1f", "2.0")],
)  # fmt: skip
def test_there_is_no_exponent_below_ten_millions(value: float, spec: str, shown: str) -> None:
    assert rounded(value, spec) == shown
