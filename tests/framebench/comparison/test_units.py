"""Sets whose figures differ in unit only are compared in one unit, or the units are named."""

from __future__ import annotations

import pytest
from framebench.comparison import compare

from .made_up_sides import launch_latencies


@pytest.mark.parametrize(
    ("unit", "factor"), [("ms", 1e3), ("us", 1e6), ("sec", 1.0), ("µs", 1e6), ("s", 1.0)]
)
def test_figures_are_converted_to_the_unit_of_the_base(unit: str, factor: float) -> None:
    base, candidate = launch_latencies("s", 1.0), launch_latencies(unit, factor)
    (row,) = compare.compare(base, candidate).itertuples()
    assert (row.unit, row.reason, row.verdict) == ("s", "", "no difference shown")
    assert row.candidate_median == pytest.approx(row.base_median)


def test_units_of_other_quantities_are_named() -> None:
    (row,) = compare.compare(launch_latencies("s", 1.0), launch_latencies("GB/s", 1.0)).itertuples()
    assert (row.verdict, row.reason) == ("cannot tell", "the units differ: s and GB/s")
