"""Phases of a run's wall time: what records contain, and the sum."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench.records.fields.phases import RunPhases, phases_of
from framebench.records.run import MetricValue, Run
from framebench.report.charts import phase_bars
from framebench.tables import frames
from framebench.tables.declared import run_phases
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ..made_up_runs import measured, run

RANK = {
    "phases": {
        "import_seconds": 2.0,
        "build_seconds": 1.0,
        "products_seconds": 0.5,
        "warmup_seconds": 8.0,
        "window_seconds": 4.0,
    },
    "warmup_step_seconds": [7.0, 0.5, 0.5],
}


def test_the_phases_add_up_to_the_wall_time() -> None:
    phases = phases_of({"wall_seconds": 20.0}, RANK)
    assert phases is not None
    assert phases._asdict() == {
        "imports": 2.0,
        "build": 1.0,
        "first_step": 7.0,
        "warm_up": 1.0,
        "window": 4.0,
        "other": 5.0,
    }
    assert sum(phases) == 20.0
    waited = {**RANK, "phases": {**RANK["phases"], "waited_window_seconds": 1.0}}
    assert phases_of({"wall_seconds": 20.0}, waited) == phases._replace(window=5.0, other=4.0)


@pytest.mark.parametrize(
    "rank",
    [
        {},
        {**RANK, "warmup_step_seconds": []},
        {**RANK, "phases": {"import_seconds": 2.0}},
        {**RANK, "phases": {**RANK["phases"], "build_seconds": "long"}},
    ],
)
def test_what_is_not_recorded_is_not_made_up(rank: dict[str, Any]) -> None:
    assert phases_of({"wall_seconds": 20.0}, rank) is None


def table(*runs: Run) -> pd.DataFrame:
    return frames.frame(run_phases.TABLE, run_phases.TABLE.rows(Inputs(group(list(runs), None))))


def test_a_case_has_the_medians_of_its_repeats() -> None:
    first = RunPhases(imports=2.0, build=1.0, first_step=7.0, warm_up=1.0, window=4.0, other=5.0)
    (row,) = table(
        run(phases=first, record=Path("r1.json")),
        run(phases=first._replace(first_step=1.0), repeat=2),
        run(phases=first._replace(first_step=2.0, window=8.0), repeat=3),
        run(None, repeat=4),
    ).to_dict("records")
    assert (row["first_step_seconds"], row["window_seconds"]) == (2.0, 4.0)
    assert row["run_seconds"] == 2 + 1 + 2 + 1 + 4 + 5
    assert row["timed_share"] == 4 / 15


def suite(*runs: Run) -> dict[str, dict[Any, Any]]:
    inputs = Inputs(group(list(runs), None))
    made = frames.frame(run_phases.SUITE, run_phases.SUITE.rows(inputs))
    return {row["framework"]: row for row in made.to_dict("records")}


def test_the_time_of_all_runs_adds_up_whatever_became_of_them() -> None:
    phases = RunPhases(imports=2.0, build=1.0, first_step=7.0, warm_up=1.0, window=4.0, other=5.0)
    ours = {"record": Path("r1.json")}
    rows = suite(
        run(phases=phases, wall_seconds=20.0, **ours),
        run(phases=phases._replace(window=8.0), wall_seconds=24.0, repeat=2, **ours),
        run(None, wall_seconds=6.0, framework="jax", **ours),
        run(wall_seconds=99.0, framework="imported"),
    )
    assert list(rows) == ["all", "pytorch", "jax"], "the sum first, then the longest"
    assert rows["all"]["suite_seconds"] == 50.0
    assert (rows["all"]["window_seconds"], rows["all"]["unattributed_seconds"]) == (12.0, 6.0)
    assert rows["all"]["timed_share"] == 12 / 50
    assert (rows["pytorch"]["runs"], rows["pytorch"]["suite_seconds"]) == (2, 44.0)
    assert math.isnan(rows["jax"]["window_seconds"]), "a failed run tells of no window"


def test_a_run_with_several_metrics_took_its_time_once() -> None:
    one = measured(
        "matmul", [MetricValue("rate", 1.0, "TFLOP/s"), MetricValue("time", 2.0, "s", "lower")]
    )
    one = replace(one, wall_seconds=3.0, record=Path("r1.json"))
    inputs = Inputs({}, others=group([one], None))
    (row,) = frames.frame(run_phases.SUITE, run_phases.SUITE.rows(inputs)).to_dict("records")
    assert (row["framework"], row["runs"], row["suite_seconds"]) == ("no framework", 1, 3.0)


def test_bars_are_as_long_as_their_phases_and_in_units_that_can_be_read() -> None:
    phases = RunPhases(
        imports=60.0, build=60.0, first_step=60.0, warm_up=0.0, window=300.0, other=0.0
    )
    made = table(
        run(phases=phases, record=Path("r1.json")), run(record=Path("r2.json"), batch_per_device=4)
    )
    (plot,) = phase_bars.of_cases(made)
    assert ">minutes<" in plot.svg
    assert ">8.0<" in plot.svg, "480 seconds"
    assert "resnet50_v1.5, train" in plot.svg
    assert plot.caption.endswith("Nothing is left out (cases: 1)."), "the other tells nothing"
    assert "warm-up" not in plot.svg, "no colour for what took no time"
    assert phase_bars.of_cases(made[made["run_seconds"].isna()]) == []


def test_a_case_whose_records_do_not_tell_has_none() -> None:
    (row,) = table(run(record=Path("r1.json"))).to_dict("records")
    assert math.isnan(row["run_seconds"])
    assert row["reason"] == "these records do not tell it"
    assert table(run(None), run(repeat=2)).empty, "neither a failed nor an imported run has phases"
