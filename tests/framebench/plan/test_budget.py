"""Repeats within a time budget."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from core.case import Case
from framebench.plan import budget
from framebench.plan.budget import Costs
from framebench.records.spending import Spending
from framebench.statistics.verdicts import FALSE_WINNERS

from .simulated_calls import BUDGET, EQUAL, NOISES, SIMULATED, UNLIKE, call, case_of, table

MOST = 30
MEASURING = Path(__file__).parents[3] / "docs" / "methods.md"


def run(repeat: int, figure: float | None, seconds: float = 10.0) -> Any:
    return SimpleNamespace(repeat=repeat, figure=figure, wall_seconds=seconds)


def costs(seconds: dict[Case, float], left: float, **stages: int) -> Costs:
    return Costs(
        {case: stages.get(case.model, 0) for case in seconds}, seconds,
        dict.fromkeys(seconds, 1.0), left,
    )  # fmt: skip


def asked(wanted: dict[Case, int], runs: dict[Case, list[Any]]) -> dict[Case, int]:
    """Return the repeats of the cases that get any."""
    return {case: n for case, n in wanted.items() if n > len(runs.get(case, []))}


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take estimates for exact."""
    monkeypatch.setattr(budget, "MARGIN", 0.0)


SLOW = {case_of(0, number): 20.0 for number in range(3)}
QUICK = {case_of(1, number): 5.0 + number for number in range(3)}


def test_the_cheapest_setting_comes_first_with_all_its_frameworks() -> None:
    wanted = budget.wanted({}, costs(SLOW | QUICK, 600), MOST)
    assert asked(wanted, {}) == dict.fromkeys(QUICK, 1)


@pytest.mark.usefixtures("exact")
def test_the_cheapest_cases_come_first_where_there_is_no_time_for_all() -> None:
    wanted = budget.wanted({}, costs(SLOW | QUICK, 14), MOST)
    assert asked(wanted, {}) == {case_of(1, 0): 1, case_of(1, 1): 1}
    assert asked(budget.wanted({}, costs(SLOW | QUICK, 5), MOST), {}) == {}


def test_the_longest_first_runs_come_first_where_all_probably_fit() -> None:
    """Fail if a slow framework is left out for want of certainty, while quick ones get the time
    that would be left for them at the end."""
    cases = {case_of(0, 0): 36.0, **{case_of(0, number): 10.0 for number in range(1, 6)}}
    first = asked(budget.wanted({}, costs(cases, 140), MOST), {})
    assert case_of(0, 0) in first
    assert len(first) < len(cases), "sure of all"


@pytest.mark.usefixtures("exact")
def test_repeats_go_to_those_whose_order_is_open() -> None:
    figures = {0: 1.0, 1: 0.95, 2: 0.3}
    runs = {case: [run(1, figures[number])] for number, case in enumerate(SLOW)}
    wanted = budget.wanted(runs, costs(SLOW, 600), MOST)
    assert asked(wanted, runs) == {case_of(0, 0): 2, case_of(0, 1): 2}
    for case in (case_of(0, 0), case_of(0, 1)):
        runs[case].append(run(2, runs[case][0].figure))
    wanted = budget.wanted(runs, costs(SLOW, 600), MOST)
    assert asked(wanted, runs) == {case_of(0, 0): 7, case_of(0, 1): 7}
    wanted = budget.wanted(runs, costs(SLOW, 99), MOST)
    assert asked(wanted, runs) == {case_of(0, 0): 7, case_of(0, 1): 6}, "towards a further call"


def test_a_setting_is_settled_before_another_gets_the_time_for_it() -> None:
    runs = {case: [run(1, 1.0, seconds)] for case, seconds in (SLOW | QUICK).items()}
    to_settle = 6 * sum(QUICK.values())
    wanted = budget.wanted(runs, costs(SLOW | QUICK, to_settle + 60), MOST)
    assert asked(wanted, runs) == dict.fromkeys(QUICK, 2)
    wanted = budget.wanted(runs, costs(SLOW | QUICK, to_settle - 1), MOST)
    assert asked(wanted, runs) == dict.fromkeys(SLOW | QUICK, 2), "fewer contenders may be left"


@pytest.mark.usefixtures("exact")
def test_a_first_look_at_a_setting_comes_before_a_second_look_at_another() -> None:
    runs = {case: [run(n, 1 + n % 2 / 3, 5.0) for n in range(1, 8)] for case in QUICK}
    runs |= {case: [run(n, 1.0, 20.0) for n in (1, 2)] for case in SLOW}
    first_look = 3 * 5 * 20.0
    wanted = budget.wanted(runs, costs(SLOW | QUICK, first_look), MOST)
    assert asked(wanted, runs) == dict.fromkeys(SLOW, 7)
    wanted = budget.wanted(runs, costs(SLOW | QUICK, first_look - 1), MOST)
    assert asked(wanted, runs) == dict.fromkeys(QUICK, 8), "there is no time for the first look"


def test_the_next_stage_begins_when_the_order_is_settled() -> None:
    at = {"model1": 1}
    runs = {case: [run(1, 1.0)] for case in SLOW}
    wanted = budget.wanted(runs, costs(SLOW | QUICK, 600, **at), MOST)
    assert not {*asked(wanted, runs)} & {*QUICK}, "the order of the first stage is open"
    figures = dict(zip(SLOW, (1.0, 0.8, 0.3), strict=True))
    runs = {case: [run(n, f + n / 1000) for n in range(1, 8)] for case, f in figures.items()}
    wanted = budget.wanted(runs, costs(SLOW | QUICK, 600, **at), MOST)
    assert asked(wanted, runs) == dict.fromkeys(QUICK, 1)


@pytest.mark.usefixtures("exact")
def test_the_two_leaders_are_measured_once_with_another_batch_at_the_end() -> None:
    larger = {case._replace(batch_per_device=64): case for case in SLOW}
    known = costs(SLOW | dict.fromkeys(larger, 40.0), 600, model0=0)
    known = known._replace(larger=larger, stages=known.stages | dict.fromkeys(larger, 1))
    figures = dict(zip(SLOW, (1.0, 0.9, 0.3), strict=True))
    runs = {case: [run(1, figure)] for case, figure in figures.items()}
    first, second, _ = larger
    assert asked(budget.wanted(runs, known, MOST), runs) == {case_of(0, 0): 2, case_of(0, 1): 2}
    runs |= {
        case: [run(n, figures[case] + n / 1000) for n in range(1, 8)] for case in [*figures][:2]
    }
    assert asked(budget.wanted(runs, known, MOST), runs) == {first: 1, second: 1}
    runs |= {case: [run(1, 1.0)] for case in (first, second)}
    assert not {*asked(budget.wanted(runs, known, MOST), runs)} & {*larger}
    *_, last = budget.answers(known, {})
    assert last.case in larger


def test_all_frameworks_come_before_the_few_that_have_mixed_precision() -> None:
    mixed = {case._replace(precision="amp"): 1.0 for case in [*SLOW][:2]}
    wanted = budget.wanted({}, costs(SLOW | mixed, 600), MOST)
    assert asked(wanted, {}) == dict.fromkeys(SLOW, 1)


def test_a_case_that_failed_is_not_repeated() -> None:
    runs = {case: [run(1, None if number == 1 else 1.0)] for number, case in enumerate(SLOW)}
    wanted = budget.wanted(runs, costs(SLOW, 600), MOST)
    assert asked(wanted, runs) == {case_of(0, 0): 2, case_of(0, 2): 2}


@pytest.mark.usefixtures("exact")
def test_a_framework_alone_gets_repeats_for_intervals() -> None:
    alone = case_of(0, 0)
    runs = {alone: [run(1, 1.0)]}
    assert budget.wanted(runs, costs({alone: 10.0}, 600), MOST) == {alone: 7}
    assert budget.wanted(runs, costs({alone: 10.0}, 25), MOST) == {alone: 3}
    runs = {alone: [run(n, 1.0) for n in range(1, 8)]}
    assert budget.wanted(runs, costs({alone: 10.0}, 600), MOST) == {alone: 7}


@pytest.mark.usefixtures("exact")
def test_the_time_that_is_left_is_not_spread_over_settled_cases() -> None:
    figures = {case_of(0, 0): 1.0, case_of(0, 1): 0.8, case_of(0, 2): 0.3}
    runs = {case: [run(n, f + n / 1000) for n in range(1, 8)] for case, f in figures.items()}
    far = case_of(0, 2)
    runs[far] = runs[far][:1]
    seconds = dict.fromkeys(figures, 10.0)
    assert not asked(budget.wanted(runs, costs(seconds, 59), MOST), runs)
    assert asked(budget.wanted(runs, costs(seconds, 60), MOST), runs) == {far: 7}


@pytest.mark.usefixtures("exact")
def test_what_a_run_took_corrects_what_others_will_take() -> None:
    runs = {case: [run(1, 1.0, 3 * seconds)] for case, seconds in QUICK.items()}
    enough = 3 * 2 * sum(SLOW.values())
    later = costs(SLOW | QUICK, enough / 2, model0=1)
    assert not {*asked(budget.wanted(runs, later, 1), runs)} - {*SLOW}
    wanted = budget.wanted(runs, later._replace(left=63), 1)
    assert len(asked(wanted, runs)) == 1, "one run of 60 s, and its checks of 3 s"
    assert not asked(budget.wanted(runs, later._replace(left=62), 1), runs)


def test_a_round_gets_less_than_fits_the_less_is_known() -> None:
    left = 1.5 * sum(21.0 for _ in SLOW)
    unknown = asked(budget.wanted({}, costs(SLOW, left), MOST), {})
    assert 0 < len(unknown) < len(SLOW)
    runs = {case: [run(1, 1.0, 20.0)] for case in [case_of(n, 0) for n in range(2, 40)]}
    seconds = dict.fromkeys(runs, 20.0)
    known = asked(budget.wanted(runs, costs(SLOW | seconds, 2 * left), 1), runs)
    assert len(known) == len(SLOW)


def test_repeats_follow_where_a_first_run_does_not_fit() -> None:
    seconds = QUICK | {case_of(0, 0): 40.0}
    runs = {case: [run(1, 1.0, known)] for case, known in QUICK.items()}
    wanted = budget.wanted(runs, costs(seconds, 45.0), MOST)
    assert asked(wanted, runs) == dict.fromkeys(QUICK, 2)
    wanted = budget.wanted(runs, costs(seconds, 4.0), MOST)
    assert not asked(wanted, runs)


@pytest.mark.usefixtures("exact")
def test_what_is_around_runs_is_paid_for() -> None:
    known = costs(QUICK, 25.0)
    assert len(asked(budget.wanted({}, known, MOST), {})) == 3
    assert len(asked(budget.wanted({}, known._replace(around=10.0), MOST), {})) == 1


@pytest.mark.parametrize(("seconds", "slower"), [(5.0, 1.0), (5.0, 5.0), (60.0, 2.0)])
def test_a_call_ends_in_time_where_runs_take_longer_than_expected(
    seconds: float, slower: float
) -> None:
    random, noise = np.random.default_rng(9), NOISES["3 % noise"]
    calls = [call(random, (EQUAL,) * 3, noise, seconds, slower=slower) for _ in range(20)]
    assert 0.7 * BUDGET < max(outcome.spent for outcome in calls) <= BUDGET


def test_only_new_records_are_spent(tmp_path: Path) -> None:
    def record(path: str, seconds: float, nodes: int = 1) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"case": {"nodes": nodes}, "wall_seconds": seconds}))

    record("runs/toy/a/r1.json", 100.0)
    spending = Spending(tmp_path)
    assert spending.seconds() == 0
    record("runs/toy/a/r2.json", 10.0, nodes=2)
    record("verification/toy/b.json", 3.0)
    record("tables/c.json", 7.0)
    (tmp_path / "runs/toy/a/r3.json").write_text("{")
    assert spending.seconds() == 23
    assert spending.runs == 2
    assert spending.newest is not None


def test_what_is_simulated_stands_in_the_documentation() -> None:
    assert [*SIMULATED] == [*NOISES, *UNLIKE]
    assert max(SIMULATED[name][0] for name in NOISES) <= 100 * FALSE_WINNERS
    assert table() in MEASURING.read_text(), f"docs/methods.md lacks\n{table()}"


@pytest.mark.parametrize("noise", SIMULATED)
def test_few_calls_name_a_wrong_winner(noise: str) -> None:
    draws, settings, sampler = 30, (EQUAL,) * 3, {**NOISES, **UNLIKE}[noise]
    random = np.random.default_rng(7)
    calls = [call(random, settings, sampler, seconds=5.0, calls=2) for _ in range(draws)]
    wrong = sum(any(winner is not None for winner in outcome.winners) for outcome in calls)
    most = max(FALSE_WINNERS, SIMULATED[noise][0] / 100) * draws
    assert wrong <= most + 2.5 * most**0.5, f"{wrong} of {draws} calls; expected are {most:.1f}"
    assert max(outcome.spent for outcome in calls) <= BUDGET
