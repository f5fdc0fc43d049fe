"""Runs that lacked memory because others held it: the next call repeats them."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan
from framebench.records import record_sets

from ..settings import CATALOG, SUITE, settings
from ..watched import as_suite_asks, save

GIB = 2**30


@pytest.mark.parametrize(
    ("held", "others", "name"),
    [
        (0.16, 21, "r1-retry1"),  # others left hardly anything
        (9, 12, "r1-retry1"),
        (21, 1, "r1"),  # it needs more than the machine has
        (0.1, 0.5, "r1"),  # an allocation that no machine could have made
        (9, None, "r1"),  # records of before do not tell
    ],
)
@pytest.mark.parametrize("bound", ["limit_bytes", "total_bytes"])
def test_a_lack_of_memory_counts_as_done_only_if_it_is_the_runs_own(
    tmp_path: Path, held: float, others: float | None, name: str, bound: str
) -> None:
    loaded = settings(tmp_path, {**SUITE, "repeats": 1}, results=str(tmp_path / "out"))
    (folder,) = make_plan(loaded, CATALOG, Machine(2, 0), None).folders.values()
    memory = {bound: 22 * GIB, "peak_bytes": int(held * GIB)}
    if others is not None:
        memory["others_bytes"] = int(others * GIB)
    content = as_suite_asks(memory=memory, status="oom", reason="out of memory")
    save(tmp_path / "out" / "runs" / folder / "r1.json", content)
    cached = record_sets.load(tmp_path / "out" / "runs")
    (run,) = make_plan(loaded, CATALOG, Machine(2, 0), cached).runs
    assert run.name == f"{folder}/{name}"
