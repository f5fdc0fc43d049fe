"""Runs of a plan: those that are repeated, compilers that are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.settings import load_settings
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan
from framebench.records import record_sets

from ..settings import CATALOG, CONFIG, SUITE, settings
from ..watched import as_suite_asks, save

GIB = 2**30
AMD, INTEL = "AuthenticAMD", "GenuineIntel"
AVX512 = frozenset({"avx2", "avx512f"})


@pytest.mark.parametrize(
    ("held", "others", "bound", "name"),
    [
        (0.16, 21, "limit_bytes", "r1-retry1"),  # others left hardly anything
        (9, 12, "total_bytes", "r1-retry1"),
        (21, 1, "limit_bytes", "r1"),  # it needs more than the machine has
        (0.1, 0.5, "total_bytes", "r1"),  # an allocation that no machine could have made
        (9, None, "limit_bytes", "r1"),  # records of before do not tell
    ],
)
def test_a_lack_of_memory_counts_as_done_only_if_it_is_the_runs_own(
    tmp_path: Path, held: float, others: float | None, bound: str, name: str
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
    assert run.path == f"{folder}/{name}"


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (Machine(2, 0, instruction_sets=AVX512, vendor=AMD), ""),
        (Machine(2, 0), ""),  # nothing is known
        (Machine(2, 0, instruction_sets=AVX512, vendor=INTEL), f"of {AMD}, here is {INTEL}"),
        (Machine(2, 0, instruction_sets=frozenset({"avx2"}), vendor=AMD), "needs avx512f"),
        (Machine(2, 1, instruction_sets=AVX512, vendor=AMD), "zentorch compiles for CPUs"),
    ],
)
def test_zentorch_is_left_out_where_it_is_not_made_for(
    tmp_path: Path, machine: Machine, reason: str
) -> None:
    settings = load_settings({**CONFIG, "suite": "zentorch", "results": str(tmp_path)}, CATALOG)
    plan = make_plan(settings, CATALOG, machine, None)
    compilers = {case.compiler for case in plan.folders}
    assert compilers == {"none", "inductor"} | ({"zentorch"} if not reason else set())
    assert {left_out.case.compiler for left_out in plan.left_out} == (
        {"zentorch"} if reason else set()
    )
    file = plan.software["pytorch@zentorch"].file
    assert file
    assert file.path.name == "pytorch-zentorch.yaml"
    assert all(reason in left_out.reason for left_out in plan.left_out)
