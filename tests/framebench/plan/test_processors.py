"""Compilers that are made for some processors."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.settings import load_settings
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan

from ..settings import CATALOG, CONFIG

AMD, INTEL = "AuthenticAMD", "GenuineIntel"
AVX512 = frozenset({"avx2", "avx512f"})


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
