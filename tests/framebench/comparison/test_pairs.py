"""Pairs among the repeats of two sides, and the order in which they were measured."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from core.case import Case
from framebench.cases.matrix import rounds
from framebench.comparison import pairs
from framebench.records.run import Run

from ..made_up_runs import run

NOON, DURATION = 1.9e9, 8.0


def ratios(base: list[Run], candidate: list[Run]) -> list[float]:
    return pairs.ratios(base, candidate, "throughput")


def timed(starts: list[float], value: float = 100.0, seconds: float = DURATION) -> list[Run]:
    """Return a repeat for each start, in seconds since NOON; its throughput identifies it."""
    return [
        run(value + number, repeat=number, started=NOON + start, wall_seconds=seconds)
        for number, start in enumerate(starts, 1)
    ]


def one_after_the_other(count: int) -> tuple[list[Run], list[Run]]:
    starts = [DURATION * number for number in range(2 * count)]
    return timed(starts[:count]), timed(starts[count:])


def as_planned(
    count: int, cases: int, variants: int, noise: float = 0.2
) -> tuple[list[Run], list[Run]]:
    """Return the repeats of the first case in its first and last variant, in the order of a plan.
    Each run takes DURATION, and up to ``noise`` of it more."""
    names = [f"v{number}" for number in range(variants)]
    found = [
        Case("toy", "toy", "train", 1, 1, batch, "fp32", "none", None, name)
        for batch in range(cases)
        for name in names
    ]
    longer = random.Random(1)
    moment = 0.0
    starts: dict[str, list[float]] = {name: [] for name in names}
    for one, _ in rounds(found, count, seed=1):
        if one.batch_per_device == 0:
            starts[one.variant].append(moment)
        moment += DURATION * longer.uniform(1, 1 + noise)
    return timed(starts[names[0]]), timed(starts[names[-1]], 200.0)


@pytest.mark.parametrize("cases", [1, 2, 10])
@pytest.mark.parametrize("variants", [2, 3, 5])
def test_all_repeats_of_variants_are_pairs(cases: int, variants: int) -> None:
    base, candidate = as_planned(12, cases, variants)
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
    base, candidate = as_planned(8, 3, 2)
    base[7] = replace(base[7], started=NOON + 86_400)
    assert len(ratios(base, candidate)) == 7
    candidate[7] = replace(candidate[7], started=NOON + 86_405)
    assert len(ratios(base, candidate)) == 8, "both were tried again"


def test_a_run_that_takes_long_is_as_near_to_the_next_one() -> None:
    base, candidate = timed([0, 56, 72, 88, 104, 120, 136]), timed([48, 64, 80, 96, 112, 128, 144])
    base[0] = replace(base[0], wall_seconds=48.0)
    assert len(ratios(base, candidate)) == 7


def test_runs_that_go_side_by_side_are_pairs() -> None:
    starts = [8.0 * number for number in range(7)]
    assert len(ratios(timed(starts), timed([start + 0.5 for start in starts]))) == 7
    assert ratios(timed([0.0] * 7), timed([0.0] * 7)) == [], "the time of none is known"


def test_a_repeat_without_a_figure_or_a_start_is_in_no_pair() -> None:
    base, candidate = as_planned(8, 3, 2)
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


def test_a_repeat_that_one_side_has_several_of_is_in_no_pair() -> None:
    base, candidate = as_planned(8, 3, 2)
    assert len(ratios([*base, base[0]], candidate)) == 7


def test_more_repeats_of_one_side_leave_the_pairs_as_they_are() -> None:
    base, candidate = as_planned(8, 10, 3)
    alone = [
        run(100.0, repeat=9 + number, started=NOON + 10_000 + 8 * number, wall_seconds=DURATION)
        for number in range(30)
    ]
    assert len(ratios([*base, *alone], candidate)) == 8
