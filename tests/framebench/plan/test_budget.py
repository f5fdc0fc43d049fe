"""Repeats within a time budget."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from core.case import Case
from framebench.plan import budget
from framebench.plan.budget import MeasuredCase
from framebench.statistics.verdicts import FALSE_WINNERS

from ..statistics.distributions import modes
from .simulated_calls import BUDGET, EQUAL, Noise, call, case_of, normal, unlike

MOST = 30


def run(repeat: int, figure: float | None) -> Any:
    return SimpleNamespace(repeat=repeat, figure=figure)


def asked(
    runs: dict[Case, list[Any]],
    seconds: dict[Case, float],
    left: float,
    at_most: int = MOST,
    checked: Mapping[Case, Case] = MappingProxyType({}),
    **stages: int,
) -> dict[Case, int]:
    """Return the repeats of the cases that get any. ``stages``: by model."""
    cases = [
        MeasuredCase(
            case,
            stages.get(case.model, case in checked),
            takes,
            1.0,
            runs.get(case, ()),
            checked.get(case),
        )
        for case, takes in seconds.items()
    ]
    wanted = budget.wanted(cases, left, at_most)
    return {case: n for case, n in wanted.items() if n > len(runs.get(case, []))}


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MARGIN", 0.0)


FIRST, SECOND, THIRD = (case_of(0, number) for number in range(3))
SLOW = dict.fromkeys((FIRST, SECOND, THIRD), 20.0)
QUICK = {case_of(1, number): 5.0 + number for number in range(3)}


def settled() -> dict[Case, list[Any]]:
    """Return seven repeats of each of three cases, whose order is settled."""
    figures = {FIRST: 1.0, SECOND: 0.8, THIRD: 0.3}
    return {case: [run(n, f + n / 1000) for n in range(1, 8)] for case, f in figures.items()}


@pytest.mark.usefixtures("exact")
def test_first_come_all_frameworks_of_the_first_setting_and_its_cheapest_cases() -> None:
    assert asked({}, SLOW | QUICK, 600) == dict.fromkeys(SLOW, 1)
    assert asked({}, QUICK | SLOW, 14) == {case_of(1, 0): 1, case_of(1, 1): 1}
    assert asked({}, QUICK | SLOW, 5) == {}
    mixed = {case._replace(precision="amp"): 1.0 for case in (FIRST, SECOND)}
    assert asked({}, mixed | SLOW, 600) == dict.fromkeys(SLOW, 1), "all before the few"


def test_a_first_run_that_does_not_fit_does_not_keep_out_shorter_ones() -> None:
    cases = {FIRST: 70.0, SECOND: 40.0}
    for left in range(150, 600, 5):
        assert asked({}, cases, left), left


def test_the_longest_first_runs_come_first_where_all_probably_fit() -> None:
    """A slow case that probably fits must not be left out for quick cases that would fit later,
    nor may it take the time of quick cases, which may lead."""
    cases = {FIRST: 36.0, **{case_of(0, number): 10.0 for number in range(1, 6)}}
    first = asked({}, cases, 160)
    assert FIRST in first
    assert len(first) < len(cases), "not all cases certainly fit"
    assert FIRST not in asked({}, cases, 120)


@pytest.mark.usefixtures("exact")
def test_repeats_go_to_those_whose_order_is_open() -> None:
    figures = {FIRST: 1.0, SECOND: 0.95, THIRD: 0.3}
    runs = {case: [run(1, figure)] for case, figure in figures.items()}
    assert asked(runs, SLOW, 600) == {FIRST: 2, SECOND: 2}
    for case in (FIRST, SECOND):
        runs[case].append(run(2, figures[case]))
    assert asked(runs, SLOW, 600) == {FIRST: 7, SECOND: 7}
    assert asked(runs, SLOW, 198) == {FIRST: 7, SECOND: 6}, "towards a further call"


@pytest.mark.usefixtures("exact")
def test_a_first_look_at_a_setting_comes_before_a_second_look_at_another() -> None:
    runs = {case: [run(n, 1 + n % 2 / 3) for n in range(1, 8)] for case in QUICK}
    runs |= {case: [run(n, 1.0) for n in (1, 2)] for case in SLOW}
    first_look = 3 * 5 * 20.0
    assert asked(runs, SLOW | QUICK, first_look) == dict.fromkeys(SLOW, 7)
    later = asked(runs, SLOW | QUICK, first_look - 1)
    assert later == dict.fromkeys(QUICK, 8), "there is no time for the first look"


def test_the_next_stage_begins_when_the_order_is_settled() -> None:
    runs = {case: [run(1, 1.0)] for case in SLOW}
    assert not {*asked(runs, SLOW | QUICK, 600, model1=1)} & {*QUICK}, "the order is open"
    assert asked(settled(), SLOW | QUICK, 600, model1=1) == dict.fromkeys(QUICK, 1)


@pytest.mark.usefixtures("exact")
def test_the_two_leaders_are_measured_once_with_another_batch_at_the_end() -> None:
    larger = {case._replace(batch_per_device=64): case for case in SLOW}
    seconds = SLOW | dict.fromkeys(larger, 40.0)
    runs = {case: some[:1] for case, some in settled().items()}
    assert asked(runs, seconds, 600, checked=larger) == {FIRST: 2, SECOND: 2}
    runs = settled() | {THIRD: runs[THIRD]}
    first, second, _ = larger
    assert asked(runs, seconds, 600, checked=larger) == {first: 1, second: 1}
    runs |= {case: [run(1, 1.0)] for case in (first, second)}
    assert not {*asked(runs, seconds, 600, checked=larger)} & {*larger}


def test_a_case_that_failed_is_not_repeated() -> None:
    runs = {case: [run(1, None if case == SECOND else 1.0)] for case in SLOW}
    assert asked(runs, SLOW, 600) == {FIRST: 2, THIRD: 2}


def test_a_round_gets_less_than_fits_the_less_is_known() -> None:
    left = 1.5 * sum(21.0 for _ in SLOW)
    assert 0 < len(asked({}, SLOW, left)) < len(SLOW)
    runs = {case: [run(1, 1.0)] for case in [case_of(n, 0) for n in range(2, 40)]}
    known = asked(runs, SLOW | dict.fromkeys(runs, 20.0), 2 * left, at_most=1)
    assert len(known) == len(SLOW)


def test_repeats_follow_where_a_first_run_does_not_fit() -> None:
    seconds = QUICK | {FIRST: 40.0}
    runs = {case: [run(1, 1.0)] for case in QUICK}
    assert asked(runs, seconds, 45.0) == dict.fromkeys(QUICK, 2)
    assert not asked(runs, seconds, 4.0)


@pytest.mark.parametrize(("seconds", "slower"), [(5.0, 1.0), (5.0, 5.0), (60.0, 2.0)])
def test_a_call_ends_in_time_where_runs_take_longer_than_expected(
    seconds: float, slower: float
) -> None:
    random, noise = np.random.default_rng(9), normal(0.03)
    calls = [call(random, (EQUAL,) * 3, noise, seconds, slower=slower) for _ in range(20)]
    assert 0.7 * BUDGET < max(outcome.spent for outcome in calls) <= BUDGET


#: Noise, and fraction of calls with a wrong winner by ``benchmarks/promises`` (docs/methods.md).
WRONG = [(normal(0.03), 0.04), (unlike(modes(0.3), modes(0.7)), 0.14)]


@pytest.mark.parametrize(("noise", "simulated"), WRONG)
def test_few_calls_name_a_wrong_winner(noise: Noise, simulated: float) -> None:
    draws, settings = 30, (EQUAL,) * 3
    random = np.random.default_rng(7)
    calls = [call(random, settings, noise, seconds=5.0, calls=2) for _ in range(draws)]
    wrong = sum(any(winner is not None for winner in outcome.winners) for outcome in calls)
    most = max(FALSE_WINNERS, simulated) * draws
    assert wrong <= most + 2.5 * most**0.5, f"{wrong} of {draws} calls; expected are {most:.1f}"
    assert max(outcome.spent for outcome in calls) <= BUDGET
