"""``repeats: auto``: more repeats until the interval is narrow, within bounds."""

from __future__ import annotations

from framebench.config.repeats import AUTO, Repeats
from framebench.plan.repeats import wanted

from ..made_up_runs import repeats as runs_of

NARROW = (100.0, 100.1, 99.9, 100.05, 99.95, 100.02, 99.98)
SOMEWHAT_WIDE = (100.0, 100.7, 99.3, 100.6, 99.4, 100.1, 99.9)
WIDE = (100.0, 103.0, 97.0, 102.0, 98.0, 101.0, 99.0)


def test_a_fixed_number_is_what_it_says() -> None:
    fixed = Repeats(3, 3, None)
    assert wanted([], fixed) == wanted(runs_of(*WIDE), fixed) == 3


def test_narrow_intervals_are_enough_and_wide_ones_ask_for_twice_as_many() -> None:
    assert wanted([], AUTO) == 7
    assert wanted(runs_of(*NARROW[:3]), AUTO) == 7, "those that are asked for come first"
    assert wanted(runs_of(*NARROW), AUTO) == 7
    assert wanted(runs_of(*SOMEWHAT_WIDE), AUTO) == 14
    assert wanted(runs_of(*WIDE), AUTO) == 30, "as many as it seems to take, and the bound"


def test_what_was_asked_for_is_still_asked_for_after_a_kill() -> None:
    for done in range(7, 14):
        some = runs_of(*SOMEWHAT_WIDE, *SOMEWHAT_WIDE)[:done]
        assert wanted(some, AUTO) == 14
    narrower = runs_of(*SOMEWHAT_WIDE, *NARROW)
    assert wanted(narrower, AUTO) == 14


def test_the_bound_ends_it() -> None:
    bounded = Repeats(7, 8, 0.01)
    assert wanted(runs_of(*WIDE), bounded) == 8
    assert wanted(runs_of(*WIDE, 100.0), bounded) == 8


def test_too_few_for_an_interval_ask_for_more() -> None:
    assert wanted(runs_of(*NARROW[:2]), Repeats(2, 30, 0.01)) == 6


def test_a_case_that_fails_gets_no_more() -> None:
    assert wanted(runs_of(*WIDE[:6], None), AUTO) == 7


def test_a_missing_repeat_is_measured_before_any_other() -> None:
    some = [run for run in runs_of(*NARROW) if run.repeat != 3]
    assert wanted(some, AUTO) == 7
