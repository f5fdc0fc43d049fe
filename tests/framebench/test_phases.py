"""Where the wall time of a run went: what a record tells of it, and what that adds up to."""

from __future__ import annotations

from typing import Any

import pytest
from framebench.records.phases import phases_of

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
