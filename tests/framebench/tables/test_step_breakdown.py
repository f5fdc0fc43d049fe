"""Step breakdown by hand-computed numbers."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from framebench.records.fields.steps import StepParts, step_parts_of
from framebench.records.run import Run

from ..made_up_runs import in_markdown, run, table_of
from ..table_rows import only, shown

PARTS = ("forward", "backward", "all-reduce", "optimizer")


def part(name: str, *seconds: float, contains: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"part": name, "seconds": list(seconds), "contains": list(contains)}


CUT = [
    part("forward", 0.3, 0.2, 0.9),
    part("backward", 0.5, 0.4, 0.5),
    part("all_reduce", 1.0, 1.1, 0.9, contains=("forward", "backward")),
    part("optimizer", 0.1, 0.1, 0.1),
]
NESTED = [
    part("forward", 0.3),
    part("backward+all_reduce", 0.9, contains=("forward",)),
    part("optimizer", 0.8, contains=("forward", "backward+all_reduce")),
]


def breakdown(*parts: dict[str, Any], reason: str = "") -> StepParts:
    actual = step_parts_of({"step_breakdown": {"reason": reason, "parts": list(parts)}})
    assert actual is not None
    return actual


def table(*runs: Run) -> pd.DataFrame:
    return table_of("step_breakdown", runs)


def test_a_part_is_a_median_less_what_it_contains() -> None:
    actual = breakdown(*CUT)
    expected = {"forward": 0.3, "backward": 0.5, "all_reduce": 0.2, "optimizer": 0.1}
    assert dict(actual.seconds) == pytest.approx(expected)
    assert actual.steps == 3
    assert actual.how == (
        "forward alone; backward alone; all_reduce as a pass until its end, less forward, "
        "backward; optimizer alone"
    )


def test_a_difference_below_zero_is_reported_as_it_is() -> None:
    seconds = dict(breakdown(*NESTED).seconds)
    assert seconds["optimizer"] == pytest.approx(-0.1)


@pytest.mark.parametrize(
    "parts",
    [
        [part("forward")],
        [part("backward", 1.0, contains=("forward",))],
        [part("forward", 1.0), part("forward", 1.0)],
    ],
)
def test_parts_that_are_none_are_refused(parts: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="not one of a step"):
        breakdown(*parts)


def test_shares_and_the_sum_over_the_step_of_the_window() -> None:
    actual = only(table(run(2.0, waited_apart=(0.9, 1.0, 1.5), step_breakdown=breakdown(*CUT))))
    assert actual["step_ms"] == 1000.0
    names = ("forward", "backward", "all_reduce", "optimizer")
    assert [actual[f"{name}_ms"] for name in names] == pytest.approx([300, 500, 200, 100])
    shares = [actual[f"{name}_share"] for name in names]
    assert shares == pytest.approx([3 / 11, 5 / 11, 2 / 11, 1 / 11])
    assert actual["sum_over_step"] == pytest.approx(1.1)
    assert (actual["breakdown_steps"], actual["reason"]) == (3, "")


def test_what_a_framework_has_in_one_stands_in_the_first_column() -> None:
    actual = only(table(run(2.0, waited_apart=(1.0,), step_breakdown=breakdown(*NESTED))))
    assert actual["backward_ms"] == pytest.approx(600)
    assert math.isnan(actual["all_reduce_ms"])
    assert "backward+all_reduce" in actual["how"]


def test_the_median_is_over_the_repeats_that_have_a_split() -> None:
    runs = [
        run(2.0, repeat=1, waited_apart=(1.0,), step_breakdown=breakdown(part("forward", 0.2))),
        run(2.0, repeat=2, waited_apart=(3.0,), step_breakdown=breakdown(part("forward", 0.4))),
        run(2.0, repeat=3, waited_apart=(9.0,)),
    ]
    actual = only(table(*runs))
    assert (actual["step_ms"], actual["breakdown_steps"]) == (2000.0, 2)
    assert actual["forward_ms"] == pytest.approx(300)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "no step breakdown in these records"),
        (
            {"step_breakdown": breakdown(reason="RuntimeError: one piece")},
            "RuntimeError: one piece",
        ),
        ({"step_breakdown": breakdown()}, "the framework told of no parts"),
        ({"throughput": None, "status": "oom", "reason": "too big"}, "oom: too big"),
    ],
)
def test_without_a_split_there_is_a_reason(changes: dict[str, Any], reason: str) -> None:
    actual = only(table(run(**{"throughput": 2.0, "waited_apart": (1.0,), **changes})))
    assert math.isnan(actual["forward_ms"])
    assert math.isnan(actual["sum_over_step"])
    assert actual["reason"] == reason


def test_a_row_says_with_what_its_forward_pass_ends() -> None:
    until_loss = breakdown({**part("forward", 0.3), "ends": "loss"}, part("backward", 0.2))
    until_logits = breakdown({**part("forward", 0.3), "ends": "logits"}, part("backward", 0.2))
    rows = table(
        run(2.0, waited_apart=(1.0,), step_breakdown=until_loss),
        run(2.0, waited_apart=(1.0,), step_breakdown=until_logits, framework="jax"),
        run(2.0, waited_apart=(1.0,), step_breakdown=breakdown(*CUT), framework="mxnet"),
    )
    ends = dict(zip(rows["framework"], rows["forward_ends"], strict=True))
    assert ends == {"pytorch": "loss", "jax": "logits", "mxnet": "not recorded"}


def test_inference_has_no_row() -> None:
    assert table(run(2.0, mode="inference")).empty


def test_markdown_shows_milliseconds_shares_and_how() -> None:
    one = run(2.0, step_seconds=(1.0,), waited_apart=(1.0,), step_breakdown=breakdown(*CUT))
    runs = [one, run(2.0, batch_per_device=64)]
    first, second = shown(in_markdown("step_breakdown", table(*runs)))
    assert [first[f"{part} ms"] for part in PARTS] == ["300.0", "500.0", "200.0", "100.0"]
    assert [first[f"{part} %"] for part in PARTS] == ["27.3", "45.5", "18.2", "9.1"]
    assert first["sum / step"] == "1.10"
    assert second["reason"] == "no step breakdown in these records"
