"""Emulated precisions are left out by the plan, with one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.machine.local import Machine
from framebench.plan import plan_text
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan
from framebench.records import record_sets
from framebench.runs import checks

from ..settings import CATALOG, changed, plan_of_suite, settings

ZEN3 = frozenset({"avx2", "fma", "f16c"})
SUITE = changed(precision=["fp32", "amp", "fp16", "fp8"])


def planned(tmp_path: Path, sets: frozenset[str] = ZEN3, gpus: int = 0, **config: Any) -> Plan:
    loaded = settings(tmp_path, SUITE, results=str(tmp_path), **config)
    cached = record_sets.load_results(tmp_path)
    return make_plan(loaded, CATALOG, Machine(2, gpus, instruction_sets=sets), cached)


@pytest.mark.parametrize(
    ("sets", "skipped"),
    [
        (ZEN3, {"amp", "fp16", "fp8"}),
        (ZEN3 | {"avx512f", "avx512_bf16"}, {"fp16", "fp8"}),  # Zen 4
        (ZEN3 | {"amx_bf16", "avx512_fp16"}, {"fp8"}),  # Sapphire Rapids
        ({"asimd", "asimdhp"}, {"amp", "fp8"}),  # Graviton 2
        (frozenset(), set()),  # nodes of a cluster: each run checks for itself
    ],
)
def test_precisions_without_instructions_are_skipped(
    tmp_path: Path, sets: frozenset[str], skipped: set[str]
) -> None:
    plan = planned(tmp_path, frozenset(sets))
    assert {left.case.precision for left in plan.left_out if "emulated" in left.reason} == skipped
    repeats = [run.case.precision for run in plan.runs]
    for precision in ("fp32", "amp", "fp16", "fp8"):
        assert repeats.count(precision) == (0 if precision in skipped else 2), precision


def test_a_gpu_emulates_nothing_for_want_of_instructions_of_the_cpu(tmp_path: Path) -> None:
    assert not [left for left in planned(tmp_path, gpus=1).left_out if "emulated" in left.reason]


def test_neither_verification_nor_peak_is_made_of_what_is_left_out(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert {each.case.precision for each in checks.full_size(plan, CATALOG)} == {"fp32"}
    assert {benchmark.precision for benchmark in checks.peak_benchmarks(plan).values()} == {"fp32"}


def test_the_plan_names_an_emulated_precision_once(tmp_path: Path) -> None:
    lines = plan_text.left_out(planned(tmp_path, frameworks=["pytorch", "mxnet"]))
    assert sum("bfloat16" in line for line in lines) == 1, lines


def test_a_precision_that_a_framework_says_it_lacks_starts_nothing(tmp_path: Path) -> None:
    sets = ZEN3 | {"amx_bf16"}
    plan = plan_of_suite("quick", tmp_path, Machine(2, 0, instruction_sets=sets))
    mixed = {case.framework for case in plan.folders if case.precision == "amp"}
    assert mixed == {"mxnet", "pytorch", "tensorflow"}
    lacking = {out.case.framework for out in plan.left_out if "has no amp" in out.reason}
    assert lacking == {case.framework for case in plan.folders} - mixed
    first = {run.case.precision for run in plan.runs}
    assert first == {"fp32"}, "all frameworks come first"
