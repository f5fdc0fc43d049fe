"""Seconds of an all-reduce, by hand-computed numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.fields.steps import GradientAllReduce
from framebench.records.run import Run

from ..saved_records import record, save


def run_of(tmp_path: Path, *fields: dict[str, Any]) -> Run:
    """Return the run of a record with these further fields of its two ranks."""
    made = record()
    for rank, more in zip(made["ranks"], fields, strict=True):
        rank |= more
    save(tmp_path, "c/r1.json", made)
    (run,) = record_sets.load(tmp_path).runs
    return run


def exchanged(*seconds: float, reason: str = "") -> dict[str, Any]:
    sizes = [] if reason else [4000, 16]
    return {"gradient_all_reduce": {"reason": reason, "bytes": sizes, "seconds": [*seconds]}}


def test_a_round_of_the_gradients_takes_as_long_as_the_slowest_rank(tmp_path: Path) -> None:
    run = run_of(tmp_path, exchanged(0.1, 0.5, 0.1), exchanged(0.2, 0.2, 0.3))
    assert run.gradient_all_reduce == GradientAllReduce((0.2, 0.5, 0.3), 2, (4000, 16))


@pytest.mark.parametrize(
    "ranks", [({}, {}), (exchanged(0.1), {}), (exchanged(reason="it does not tell"),) * 2]
)
def test_without_rounds_of_all_ranks_nothing_is_known_of_the_gradients(
    tmp_path: Path, ranks: tuple[Any, Any]
) -> None:
    assert run_of(tmp_path, *ranks).gradient_all_reduce is None
