"""Losses of several devices, split by hand-computed numbers."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from framebench.config.kinds import INDEPENDENT
from framebench.records.fields.step_parts import StepParts
from framebench.records.run import Run
from framebench.report.charts import loss_bars
from framebench.tables import frames
from framebench.tables.declared.scaling import STRONG, WEAK
from framebench.tables.grouping import group
from framebench.tables.losses import COLUMNS
from framebench.tables.table import Inputs

from ..made_up_runs import in_markdown, repeats
from ..table_rows import row

PARTS = ("shared_hardware_loss", "all_reduce_loss", "rest_loss")
VALUES = (99.2, 99.6, 99.9, 100.0, 100.1, 100.4, 100.9)


def alone(*throughputs: float | None) -> list[Run]:
    return repeats(*throughputs)


def together(*throughputs: float | None, **changes: Any) -> list[Run]:
    return repeats(*throughputs, devices_per_node=2, **changes)


def control(*throughputs: float | None, **changes: Any) -> list[Run]:
    return together(*throughputs, mode=INDEPENDENT, **changes)


def weak(*runs: list[Run]) -> pd.DataFrame:
    cases = group([run for some in runs for run in some], None)
    steps, others = (
        {key: result for key, result in cases.items() if key.case.is_step is is_step}
        for is_step in (True, False)
    )
    return frames.frame(WEAK, WEAK.rows(Inputs(steps, others=others)))


def of_two(*runs: list[Run]) -> Any:
    return row(weak(*runs), devices=2)


def scaled(factor: float) -> list[float]:
    return [factor * value for value in VALUES]


#: A step of 2 x 32 samples at 120 samples/s takes 533 ms, 80 of them all-reduce alone.
STEP_BREAKDOWN = StepParts(
    (("forward", 0.15), ("backward", 0.3), ("all_reduce", 0.08), ("optimizer", 0.01)), 3
)


def test_the_loss_is_split_by_the_control() -> None:
    actual = of_two(alone(100.0), together(120.0, step_breakdown=STEP_BREAKDOWN), control(160.0))
    assert actual["efficiency"] == 0.6
    assert actual["shared_hardware_loss"] == pytest.approx(0.2)
    assert actual["communication_loss"] == pytest.approx(0.2)
    assert actual["all_reduce_loss"] == pytest.approx(0.8 * 0.08 / (64 / 120))
    assert sum(actual[part] for part in PARTS) == pytest.approx(1 - actual["efficiency"])


def test_a_step_in_one_piece_leaves_the_exchange_whole() -> None:
    """Fail if OneFlow's all-reduce, inseparable from its backward pass, is split off."""
    joined = StepParts((("forward", 0.1), ("backward+all_reduce", 0.4), ("optimizer", 0.01)), 3)
    actual = of_two(alone(100.0), together(120.0, step_breakdown=joined), control(160.0))
    assert actual["communication_loss"] == pytest.approx(0.2)
    assert math.isnan(actual["all_reduce_loss"])
    assert math.isnan(actual["rest_loss"])
    apart = {"devices_per_node": 4}
    other = [
        *repeats(240.0, step_breakdown=STEP_BREAKDOWN, **apart),
        *repeats(320.0, mode=INDEPENDENT, **apart),
    ]
    both = weak(alone(100.0), together(120.0, step_breakdown=joined), control(160.0), other)
    assert "not timed apart" in in_markdown("weak_scaling", both)


@pytest.mark.parametrize(
    "other",
    [
        [],
        control(None),
        control(160.0, batch_per_device=16),
        control(160.0, nodes=2),
        control(160.0, precision="amp"),
        control(160.0, cores_per_device=2),
    ],
)
def test_without_a_control_of_the_same_case_nothing_is_split(other: list[Run]) -> None:
    actual = of_two(alone(100.0), together(120.0, step_breakdown=STEP_BREAKDOWN), other)
    assert actual["efficiency"] == 0.6
    for column in COLUMNS:
        assert actual[column.name] in ("", None) or math.isnan(actual[column.name]), column.name


def test_a_case_without_a_control_beside_one_that_has_it_is_not_measured() -> None:
    runs = [alone(100.0), together(120.0), control(160.0), repeats(300.0, devices_per_node=4)]
    text = in_markdown("weak_scaling", weak(*runs))
    assert "not measured" in text
    assert "one device" in text


def test_intervals_enclose_the_losses_and_need_repeats() -> None:
    actual = of_two(alone(*VALUES), together(*scaled(1.2)), control(*scaled(1.6)))
    for name in ("shared_hardware_loss", "communication_loss"):
        assert actual[name] == pytest.approx(0.2)
        assert actual[f"{name}_ci_low"] < actual[name] < actual[f"{name}_ci_high"]
    six = [values[:6] for values in (VALUES, scaled(1.2), scaled(1.6))]
    few = of_two(alone(*six[0]), together(*six[1]), control(*six[2]))
    assert few["shared_hardware_loss"] == pytest.approx(actual["shared_hardware_loss"], abs=0.02)
    for name in ("shared_hardware_loss", "communication_loss"):
        assert math.isnan(few[f"{name}_ci_low"]), "six repeats are too few for a ratio"


def with_breakdowns(throughputs: list[float], parts: list[float]) -> list[Run]:
    """Return runs in whose steps so large a fraction is all-reduce alone."""
    return [
        replace(run, step_breakdown=StepParts((("all_reduce", part * 64 / throughput),), 3))
        for run, throughput, part in zip(together(*throughputs), throughputs, parts, strict=True)
    ]


def test_the_intervals_cover_the_losses_as_often_as_they_say() -> None:
    """Fail if the intervals cover the losses less often than they say, in 200 sets.
    All-reduce of 0.2 after a loss of 0.2, 0.12 of it communication; noise of 3 % per run and
    of 10 % per all-reduce."""
    random_ = random.Random(3)

    def noisy(middle: float, part: float = 0.03) -> list[float]:
        return [random_.gauss(middle, part * middle) for _ in range(7)]

    held = {"communication_loss": 0, "all_reduce_loss": 0}
    true = {"communication_loss": 0.2, "all_reduce_loss": 0.12}
    for _ in range(200):
        steps = with_breakdowns(noisy(120.0), noisy(0.15, 0.1))
        actual = of_two(alone(*noisy(100.0)), steps, control(*noisy(160.0)))
        for name, value in true.items():
            held[name] += actual[f"{name}_ci_low"] <= value <= actual[f"{name}_ci_high"]
    assert min(held.values()) >= 0.93 * 200, held


def test_communication_has_an_interval_where_enough_repeats_have_a_breakdown() -> None:
    parts = [0.15 * value / 100 for value in VALUES]
    steps = with_breakdowns(scaled(1.2), parts)
    actual = of_two(alone(*VALUES), steps, control(*scaled(1.6)))
    low, high = actual["all_reduce_loss_ci_low"], actual["all_reduce_loss_ci_high"]
    assert actual["all_reduce_loss"] == pytest.approx(0.8 * 0.15)
    assert low < actual["all_reduce_loss"] < high
    assert low == pytest.approx(0.12, rel=0.03)
    parts_once = [
        replace(run, step_breakdown=run.step_breakdown if run.repeat == 1 else None)
        for run in steps
    ]
    once = weak(alone(*VALUES), parts_once, control(*scaled(1.6)))
    assert math.isnan(row(once, devices=2)["all_reduce_loss_ci_low"])
    (low_end,) = [column for column in COLUMNS if column.name == "all_reduce_loss_ci_low"]
    assert low_end.why
    why = low_end.why({"all_reduce_loss": 0.1})
    assert why == "needs 7 repeats with a step breakdown"


def test_marks_of_the_control_stand_next_to_what_follows_from_it() -> None:
    actual = of_two(
        alone(*VALUES), together(*scaled(1.2)), control(*(160.0 + n for n in range(0, 60, 10)))
    )
    assert actual["control_flags"] == "noisy"
    assert "noisy" not in actual["flags"].split(), "the efficiency does not follow from the control"


def test_a_smaller_batch_on_each_device_is_no_matter_of_the_control() -> None:
    assert not {column.name for column in COLUMNS} & {*STRONG.names}


def test_the_report_draws_what_is_lost_to_what() -> None:
    four = {"devices_per_node": 4}
    runs = [alone(100.0), together(120.0, step_breakdown=STEP_BREAKDOWN), control(160.0)]
    other = [*repeats(240.0, **four), *repeats(320.0, mode=INDEPENDENT, **four)]
    (plot,) = loss_bars.of_weak_scaling(weak(*runs, other))
    assert plot.description.startswith("What 2 cases on several devices reach")
    for drawn in (plot.svg, plot.narrow):
        assert drawn is not None
        for words in ("shared hardware", ">communication<", ">communication and rest<", ">40.0<"):
            assert words in drawn
    (apart,) = loss_bars.of_weak_scaling(weak(*runs))
    assert ">communication and rest<" not in apart.svg, "no case has it in one"
    assert loss_bars.of_weak_scaling(weak(*runs[:2])) == []
