"""Emulated precisions are left out by the plan, with one message, unless requested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from core import precisions
from framebench.machine.local import Machine
from framebench.plan import plan_text
from framebench.plan.planning import Plan, make_plan
from framebench.records import record_sets
from framebench.runs import commands, peak_flops, verify

from ..settings import CATALOG, changed, settings
from ..watched import as_suite_asks, save

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
        ({"asimd", "asimdhp", "bf16"}, {"fp8"}),  # Graviton 3
        (frozenset(), set()),  # nodes of a cluster: each run checks for itself
    ],
)
def test_precisions_without_instructions_are_skipped(
    tmp_path: Path, sets: frozenset[str], skipped: set[str]
) -> None:
    plan = planned(tmp_path, frozenset(sets))
    assert {case.precision for case in plan.emulated} == skipped
    repeats = [run.case.precision for run in plan.runs]
    for precision in ("fp32", "amp", "fp16", "fp8"):
        assert repeats.count(precision) == (1 if precision in skipped else 2), precision


def test_a_gpu_emulates_nothing_for_want_of_instructions_of_the_cpu(tmp_path: Path) -> None:
    assert not planned(tmp_path, gpus=1).emulated


def test_neither_verification_nor_peak_is_made_of_what_is_skipped(tmp_path: Path) -> None:
    for emulated, expected in (("skip", {"fp32"}), ("measure", {"fp32", "amp", "fp16", "fp8"})):
        plan = planned(tmp_path, emulated=emulated)
        assert {each.case.precision for each in verify.full_size(plan, CATALOG)} == expected
        assert {benchmark.precision for benchmark in peak_flops.wanted(plan)} == expected


def test_the_plan_says_it_once_with_the_key_that_measures(tmp_path: Path) -> None:
    lines = [
        line for line in plan_text.describe(planned(tmp_path)).splitlines() if "mulated" in line
    ]
    assert any("3 cases" in line and "emulated=measure" in line for line in lines), lines
    measured = plan_text.describe(planned(tmp_path, emulated="measure"))
    assert "emulated=measure" not in measured


def test_runs_are_reported_and_what_is_skipped_takes_no_time(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    for run in plan.runs:
        assert "--emulated skip" in " ".join(commands.arguments(plan, run))
    seconds = {run.case.precision: run.seconds for run in plan.runs}
    assert seconds["amp"] < 2 < seconds["fp32"]
    measured = {
        run.case.precision: run.seconds for run in planned(tmp_path, emulated="measure").runs
    }
    assert measured["amp"] > 2 * measured["fp32"], "planned like fp32"


def test_what_was_skipped_is_measured_when_asked_for(tmp_path: Path) -> None:
    (run,) = (run for run in planned(tmp_path).runs if run.case.precision == "amp")
    reason = f"{precisions.EMULATED}no instructions"
    record = as_suite_asks(status="unsupported", reason=reason)
    record["case"]["precision"] = "amp"
    save(tmp_path / "runs" / f"{run.name}.json", record)

    def amp(**config: str) -> list[tuple[str, str]]:
        plan = planned(tmp_path, **config)
        runs = (run for run in plan.runs if run.case.precision == "amp")
        return [(Path(run.name).name, run.status) for run in runs]

    assert amp() == [("r1", "unsupported")]
    assert amp(emulated="measure") == [("r1-retry1", ""), ("r2", "")]
