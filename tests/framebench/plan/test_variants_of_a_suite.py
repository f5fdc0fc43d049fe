"""Variants with variables of their own: runs and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from framebench.cases import conditions
from framebench.plan.planning import Plan
from framebench.records import record_sets
from framebench.runs import commands
from framebench.tables.declared.speedups import WEAK
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ..made_up_runs import in_markdown, repeats
from ..settings import SUITE, plan


def with_variant(tmp_path: Path, **variant: Any) -> Plan:
    axes = {**SUITE["axes"], "framework": ["pytorch"]}
    return plan(tmp_path, {**SUITE, "axes": axes, "variants": {"default": None, "other": variant}})


def test_the_runs_of_that_variant_are_reported_and_are_others(tmp_path: Path) -> None:
    made = with_variant(tmp_path, variables={"LD_PRELOAD": "own.so"})
    arguments = {run.case.variant: commands.arguments(made, run) for run in made.runs}
    assert arguments["other"][-2:] == ["--variable", "LD_PRELOAD=own.so"]
    assert "--variable" not in arguments["default"]
    before = with_variant(tmp_path).folders
    after = made.folders
    changed = {case.variant for case in after if after[case] != before[case]}
    assert changed == {"other"}


def test_they_are_conditions_that_tables_show() -> None:
    settings = {"accelerator": "cpu", "cores_per_device": 1}
    usual = conditions.conditions_from_settings(settings)
    before = conditions.conditions_from_settings({**settings, "preload": "jemalloc"})
    assert usual != before, "an allocator in a record of before"
    theirs = conditions.conditions_from_settings({**settings, "source": "torchvision"})
    assert (usual.model_source, theirs.model_source) == ("", "torchvision")
    runs = [*repeats(100.0), *repeats(99.0, model_source="torchvision")]
    table = Inputs(group(runs, {})).frame_of(WEAK)
    assert len(table) == 2, "repeats of one code and of another share no median"
    text = in_markdown("weak_scaling", table)
    assert "| code by |" in text
    assert "| torchvision |" in text


def test_variants_are_compared_whatever_they_have_of_their_own(tmp_path: Path) -> None:
    own = {"suite_variant": "other", "model_source": "torchvision"}
    runs = (*repeats(100.0, suite_variant="default"), *repeats(120.0, **own))
    actual = record_sets.RecordSet(runs, (), tmp_path)
    base, candidate = (record_sets.runs_of_variant(actual, name) for name in ("default", "other"))
    assert {run.key for run in base} == {run.key for run in candidate}
