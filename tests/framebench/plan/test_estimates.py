"""Estimates for a machine that has no records."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.settings import load_settings
from framebench.machine.local import Machine
from framebench.plan.planning import Plan, make_plan
from framebench.runs import jobs, peak_flops, total, verify

from ..settings import CATALOG, CONFIG

AVX2 = frozenset({"avx2", "fma"})
SAPPHIRE_RAPIDS = AVX2 | {"avx512f", "avx512_bf16", "amx_bf16"}


def planned(suite: str, tmp_path: Path, sets: frozenset[str]) -> Plan:
    asked = load_settings({**CONFIG, "suite": suite, "results": str(tmp_path)}, CATALOG)
    return make_plan(asked, CATALOG, Machine(2, 0, instruction_sets=sets), None)


def test_a_core_without_avx512_is_expected_to_be_slower(tmp_path: Path) -> None:
    slow, fast = (planned("careful", tmp_path, sets) for sets in (AVX2, SAPPHIRE_RAPIDS))
    seconds = {run.case: run.seconds for run in fast.runs}
    for run in slow.runs:
        if run.case not in slow.emulated:
            assert run.seconds > 1.5 * seconds[run.case], run.case


@pytest.mark.parametrize("sets", [AVX2, SAPPHIRE_RAPIDS])
def test_a_time_budget_is_what_a_call_takes_besides_environments(
    tmp_path: Path, sets: frozenset[str]
) -> None:
    plan = planned("quick", tmp_path, sets)
    comparisons = verify.small(
        plan, CATALOG, verify.names(plan, CATALOG, verify.comparisons(plan, CATALOG))
    )
    probes = peak_flops.names(plan)
    pending = [*jobs.of_all(plan, probes, comparisons)]
    other = sum(job.seconds for job in pending if job.kind in ("environment", "tables"))
    assert total.left(plan, probes, comparisons).seconds == pytest.approx(600 + other)
    measuring = sum(job.seconds for job in pending if job.kind not in ("environment", "tables"))
    assert measuring < 600, "the first round"
