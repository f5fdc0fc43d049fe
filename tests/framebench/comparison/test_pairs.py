"""Pairs among the repeats of two sides, and the order in which they were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from framebench.records.run import Run, measuring_order, paired_ratios

from ..made_up_runs import run
from .made_up_sides import DURATION, interleaved_sides, timed_repeats


def ratios(base: list[Run], candidate: list[Run]) -> list[float]:
    return paired_ratios(base, candidate, "throughput")


@pytest.mark.parametrize("cases", [1, 2, 10])
@pytest.mark.parametrize("variants", [2, 3, 5])
def test_all_repeats_of_variants_are_pairs(cases: int, variants: int) -> None:
    base, candidate = interleaved_sides(12, cases, variants)
    expected = [(200 + number) / (100 + number) for number in range(1, 13)]
    assert ratios(base, candidate) == pytest.approx(expected)
    assert ratios(base[::-1], candidate[3:] + candidate[:3]) == pytest.approx(expected)
    assert measuring_order(base, candidate) == "interleaved"


@pytest.mark.parametrize("count", [1, 3, 7])
def test_of_sets_measured_one_after_the_other_none_is_a_pair(count: int) -> None:
    starts = [DURATION * number for number in range(2 * count)]
    base, candidate = timed_repeats(starts[:count]), timed_repeats(starts[count:])
    assert ratios(base, candidate) == ratios(candidate, base) == []
    for sides in ((base, candidate), (candidate, base)):
        assert measuring_order(*sides) == "one after the other"


def test_a_repeat_without_a_figure_is_in_no_pair_nor_sides_without_a_start() -> None:
    base, candidate = interleaved_sides(8, 3, 2)
    some = [run(None, repeat=1, started=base[0].started), *base[1:]]
    assert len(ratios(some, candidate)) == 7
    assert len(ratios(candidate, some[2:])) == 6
    unknown = [replace(one, started=None) for one in base]
    assert ratios(unknown, candidate) == []
    assert measuring_order(unknown, candidate) == measuring_order(candidate, unknown) == ""
    assert measuring_order([*unknown[:1], *base[1:]], candidate) == ""
    assert measuring_order([], candidate) == measuring_order([], []) == ""
