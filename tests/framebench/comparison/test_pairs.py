"""Pairs among the repeats of two sides, and the order in which they were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from framebench.records import pairs
from framebench.records.run import Run

from ..made_up_runs import run
from .made_up_sides import DURATION, NOON, interleaved_sides, timed_repeats


def ratios(base: list[Run], candidate: list[Run]) -> list[float]:
    return pairs.ratios(base, candidate, "throughput")


def one_after_the_other(count: int) -> tuple[list[Run], list[Run]]:
    starts = [DURATION * number for number in range(2 * count)]
    return timed_repeats(starts[:count]), timed_repeats(starts[count:])


@pytest.mark.parametrize("cases", [1, 2, 10])
@pytest.mark.parametrize("variants", [2, 3, 5])
def test_all_repeats_of_variants_are_pairs(cases: int, variants: int) -> None:
    base, candidate = interleaved_sides(12, cases, variants)
    expected = [(200 + number) / (100 + number) for number in range(1, 13)]
    assert ratios(base, candidate) == pytest.approx(expected)
    assert ratios(base[::-1], candidate[3:] + candidate[:3]) == pytest.approx(expected)
    assert pairs.order(base, candidate) == "interleaved"


@pytest.mark.parametrize("count", [1, 3, 7])
def test_of_sets_measured_one_after_the_other_none_is_a_pair(count: int) -> None:
    base, candidate = one_after_the_other(count)
    assert ratios(base, candidate) == ratios(candidate, base) == []
    for sides in ((base, candidate), (candidate, base)):
        assert pairs.order(*sides) == "one after the other"


def test_what_was_tried_again_long_after_its_partner_is_no_pair() -> None:
    base, candidate = interleaved_sides(8, 3, 2)
    base[7] = replace(base[7], started=NOON + 86_400)
    assert len(ratios(base, candidate)) == 7
    candidate[7] = replace(candidate[7], started=NOON + 86_405)
    assert len(ratios(base, candidate)) == 8, "both were tried again"


def test_a_run_that_takes_long_is_as_near_to_the_next_one() -> None:
    base, candidate = (
        timed_repeats([0, 56, 72, 88, 104, 120, 136]),
        timed_repeats([48, 64, 80, 96, 112, 128, 144]),
    )
    base[0] = replace(base[0], wall_seconds=48.0)
    assert len(ratios(base, candidate)) == 7


def test_runs_that_go_side_by_side_are_pairs() -> None:
    starts = [8.0 * number for number in range(7)]
    assert len(ratios(timed_repeats(starts), timed_repeats([start + 0.5 for start in starts]))) == 7
    assert ratios(timed_repeats([0.0] * 7), timed_repeats([0.0] * 7)) == [], (
        "the time of none is known"
    )


def test_a_repeat_without_a_figure_or_a_start_is_in_no_pair() -> None:
    base, candidate = interleaved_sides(8, 3, 2)
    some = [run(None, repeat=1, started=base[0].started), *base[1:]]
    assert len(ratios(some, candidate)) == 7
    assert len(ratios(candidate, some[2:])) == 6
    unknown = [replace(one, started=None) for one in base]
    assert ratios(unknown, candidate) == []
    endless = [replace(one, wall_seconds=None) for one in base]
    assert ratios(endless, candidate) == []
    assert pairs.order(unknown, candidate) == pairs.order(candidate, unknown) == ""
    assert pairs.order([*unknown[:1], *base[1:]], candidate) == ""
    assert pairs.order([], candidate) == pairs.order([], []) == ""
