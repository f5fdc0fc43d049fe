"""Where the wall time of a run went: what a record tells of it, and what that adds up to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench.records.phases import Phases, phases_of
from framebench.records.run import Run
from framebench.tables import frames
from framebench.tables.declared import run_phases
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from .made_up_runs import run

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


@pytest.mark.parametrize(
    "rank",
    [
        {},
        {**RANK, "warmup_step_seconds": []},
        {**RANK, "phases": {"import_seconds": 2.0}},
        {**RANK, "phases": {**RANK["phases"], "build_seconds": "long"}},
    ],
)
def test_what_is_not_told_is_not_made_up(rank: dict[str, Any]) -> None:
    assert phases_of({"wall_seconds": 20.0}, rank) is None


def table(*runs: Run) -> pd.DataFrame:
    return frames.frame(run_phases.TABLE, run_phases.rows(Inputs(group(list(runs), None))))


def test_a_case_has_the_medians_of_its_repeats() -> None:
    first = Phases(imports=2.0, build=1.0, first_step=7.0, warm_up=1.0, window=4.0, other=5.0)
    (row,) = table(
        run(phases=first, record=Path("r1.json")),
        run(phases=first._replace(first_step=1.0), repeat=2),
        run(phases=first._replace(first_step=2.0, window=8.0), repeat=3),
        run(None, repeat=4),
    ).to_dict("records")
    assert (row["first_step_seconds"], row["window_seconds"]) == (2.0, 4.0)
    assert row["run_seconds"] == 2 + 1 + 2 + 1 + 4 + 5
    assert row["timed_share"] == 4 / 15


def test_a_case_whose_records_do_not_tell_has_none() -> None:
    (row,) = table(run(record=Path("r1.json"))).to_dict("records")
    assert math.isnan(row["run_seconds"])
    assert row["reason"] == "these records do not tell it"
    assert table(run(None), run(repeat=2)).empty, "neither a failed nor an imported run has phases"
