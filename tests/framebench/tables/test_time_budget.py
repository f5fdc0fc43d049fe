"""The table of winners where a time budget decided the repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from framebench.records.run import Flag, Run
from framebench.records.sidecars import ExpectedCase
from framebench.statistics.verdicts import CANNOT_TELL, FASTER, NO_DIFFERENCE
from framebench.tables.columns import Row
from framebench.tables.contests import find_contests
from framebench.tables.declared.fastest import FASTEST, slower
from framebench.tables.results import group
from framebench.tables.table import Inputs, frame_rows

from ..made_up_runs import SEVEN, changed, repeats


def by(framework: str, factor: float, values: Sequence[float] = SEVEN) -> list[Run]:
    made = repeats(
        *(factor * value for value in values), framework=framework, framework_version="1"
    )
    return [replace(run, wall_seconds=30.0) for run in made]


def measured(*sides: list[Run], settings: int = 1) -> Inputs:
    """Return the inputs of tables with one of ``settings`` of a suite."""
    runs = [run for some in sides for run in some]
    asked = [
        ExpectedCase(
            "quick", "", run.case._replace(framework_version="", batch_per_device=batch),
            run.conditions, is_budgeted=True,
        )
        for run in runs
        for batch in (32, *range(33, 32 + settings))
    ]  # fmt: skip
    return Inputs(group(runs, None), expected=asked)


def fastest(*sides: list[Run], settings: int = 1) -> Row:
    """Return the row of a setting, one of ``settings`` of a suite."""
    (row,) = frame_rows(measured(*sides, settings=settings).frame_of(FASTEST))
    return row


def test_a_row_says_who_is_faster_with_the_batch_that_checks_it() -> None:
    def checked(jax: float) -> Row:
        inputs = measured(by("jax", 1.2), by("pytorch", 1.0), by("mxnet", 0.3, SEVEN[:1]))
        sides = (*by("jax", jax, (99.0,)), *by("pytorch", 1.0, (99.0,)))
        runs = [replace(run, case=run.case._replace(batch_per_device=128)) for run in sides]
        every = [*(run for case in inputs.cases.values() for run in case.runs), *runs]
        inputs = replace(inputs, cases=group(every, None))
        (row,) = frame_rows(inputs.frame_of(FASTEST))
        assert (row["framework"], row["verdict"]) == ("jax", FASTER)
        return row

    assert checked(0.8)["other_batch"] == "with batch 128: pytorch 1.25x jax, 1 repeat"
    assert checked(1.1)["other_batch"] == ""


def test_contenders_are_named_with_what_their_next_look_takes() -> None:
    row = fastest(
        by("jax", 1.2, SEVEN[:2]), by("pytorch", 1.1, SEVEN[:2]), by("mxnet", 0.3, SEVEN[:1])
    )
    assert row["verdict"] == ""
    text = "not settled between jax, pytorch: 7 repeats of each, about 5 min"
    assert row["reason"].startswith(text)
    assert row["lead_ci_low"] is None


def test_a_third_framework_that_is_near_keeps_the_winner_open() -> None:
    row = fastest(by("jax", 1.2), by("pytorch", 1.1), by("mxnet", 1.08, SEVEN[:2]))
    assert row["verdict"] == CANNOT_TELL
    text = "not settled between jax, mxnet (pytorch significantly slower): 7 repeats of each"
    assert row["reason"].startswith(text)


def test_a_framework_may_be_slower_while_the_winner_is_open() -> None:
    inputs = measured(by("jax", 1.2), by("pytorch", 1.1), by("mxnet", 1.19, SEVEN[:2]))
    (behind,) = slower(find_contests(inputs))
    assert [result.case.framework for result in behind] == ["pytorch"]


def test_settings_share_the_error_rate() -> None:
    # One repeat of each side is out of order: significant for a single setting, but not for one of
    # forty.
    near = (by("jax", 1.0), by("pytorch", 1.0, (*SEVEN[1:6], 98.0, 99.1)))
    overlapping = (
        by("jax", 1.02),
        by("pytorch", 1.0, (97.0, 98.0, 98.5, 99.0, 99.5, 100.0, 101.5)),
    )
    assert fastest(*overlapping)["verdict"] == FASTER
    assert fastest(*overlapping, settings=40)["verdict"] == CANNOT_TELL
    assert fastest(*near)["verdict"] in (CANNOT_TELL, NO_DIFFERENCE)


def test_a_difference_of_shape_alone_is_no_lead() -> None:
    # All repeats of the leader are above most of the other's, but the medians are not far enough
    # apart.
    row = fastest(by("jax", 1.01), by("pytorch", 1.0, (80.0, 82.0, 99.7, 99.8, 99.9, 99.9, 102.0)))
    assert row["verdict"] == CANNOT_TELL
    assert row["lead_ci_low"] < 1 < row["lead_ci_high"]


def test_an_equal_pair_is_settled_without_a_winner() -> None:
    row = fastest(by("jax", 1.0), by("pytorch", 1.001))
    assert (row["verdict"], row["reason"]) == (NO_DIFFERENCE, "")


@pytest.mark.parametrize("more", [0.0, 30.0])
def test_further_repeats_do_not_change_an_order_that_was_shown(more: float) -> None:
    shown = by("jax", 1.2)
    later = [replace(run, repeat=8) for run in by("jax", 1.0, (100.0 - more,))]
    row = fastest([*shown, *later], [*by("pytorch", 1.0)])
    assert row["verdict"] == FASTER, "the look at seven repeats of each stays as it was"


TWO = (99.5, 100.5)


def compiled(framework: str, factor: float) -> list[Run]:
    return [changed(run, compiler="xla") for run in by(framework, factor, TWO)]


#: Fastest and runner-up of a setting that is settled between JAX and PyTorch, then MXNet.
SETTLED = (by("jax", 1.2), by("pytorch", 1.0), by("mxnet", 0.3, SEVEN[:1]))


@pytest.mark.parametrize("budgeted", [True, False])
@pytest.mark.parametrize(
    ("later", "verdict", "certainty"),
    [
        ([], FASTER, "sure"),
        (compiled("jax", 1.5), FASTER, "order sure"),
        (compiled("pytorch", 1.1), FASTER, "order sure"),
        (compiled("pytorch", 1.3), "", "open"),
        (compiled("jax", 1.5) + compiled("pytorch", 1.3), "", "open"),
        (by("tensorflow", 1.1, TWO), "", "open"),
    ],
)
def test_a_faster_variant_with_few_repeats_leaves_the_order_that_was_shown(
    later: list[Run], verdict: str, certainty: str, budgeted: bool
) -> None:
    inputs = measured(*SETTLED, later)
    inputs = inputs if budgeted else replace(inputs, expected=())
    (row,) = frame_rows(inputs.frame_of(FASTEST))
    assert row["certainty"] == certainty
    assert (row["verdict"] == FASTER) == (verdict == FASTER)


@pytest.mark.parametrize("flag", ["disturbed", "noisy"])
def test_a_lead_of_disturbed_or_noisy_figures_is_sure_in_its_order_alone(flag: str) -> None:
    jax = [replace(run, flags=(Flag(flag, ""),)) for run in by("jax", 1.2)]
    row = fastest(jax, by("pytorch", 1.0))
    assert (row["verdict"], row["certainty"]) == (FASTER, "order sure")
