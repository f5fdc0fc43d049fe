"""Runs of a plan: sizes of quick, repeated runs, left-out compilers, variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.cases import conditions
from framebench.machine.local import Machine
from framebench.plan.plan import Plan, note_expected
from framebench.plan.planning import make_plan
from framebench.records import record_sets
from framebench.records.sidecars import load_expected
from framebench.runs import commands
from framebench.tables.declared.speedups import WEAK
from framebench.tables.results import group
from framebench.tables.table import Inputs

from ..made_up_runs import in_markdown, repeats
from ..saved_records import save
from ..settings import CATALOG, SUITE, changed, plan, plan_of_suite, settings
from ..watched import as_suite_asks

GIB = 2**30


@pytest.mark.parametrize(
    ("held", "others", "bound", "name"),
    [
        (0.16, 21, "limit_bytes", "r1-retry1"),  # other processes left hardly any memory
        (9, 12, "total_bytes", "r1-retry1"),
        (21, 1, "limit_bytes", "r1"),  # the run needs more memory than the machine has
        (0.1, 0.5, "total_bytes", "r1"),  # an allocation too large for any machine
        (9, None, "limit_bytes", "r1"),  # older records lack the value
    ],
)
def test_a_run_out_of_memory_counts_as_done_only_if_it_caused_that_itself(
    tmp_path: Path, held: float, others: float | None, bound: str, name: str
) -> None:
    loaded = settings(tmp_path, {**SUITE, "repeats": 1}, results=str(tmp_path / "out"))
    (folder,) = make_plan(loaded, CATALOG, Machine(2, 0), None).folders.values()
    memory = {bound: 22 * GIB, "peak_bytes": int(held * GIB)}
    if others is not None:
        memory["others_bytes"] = int(others * GIB)
    content = as_suite_asks(memory=memory, status="oom", reason="out of memory")
    save(tmp_path, f"out/runs/{folder}/r1.json", content)
    cached = record_sets.load(tmp_path / "out" / "runs")
    (run,) = make_plan(loaded, CATALOG, Machine(2, 0), cached).runs
    assert run.path == f"{folder}/{name}"


@pytest.mark.parametrize("cores", [2, 64])
def test_a_device_is_all_cores_and_its_batch_grows_with_them(tmp_path: Path, cores: int) -> None:
    actual = plan_of_suite("quick", tmp_path, Machine(cores, 0))
    assert actual.capacity.cores_per_device == cores
    batches = {
        (case.model, case.mode, case.batch_per_device // cores)
        for case in actual.folders
        if case not in actual.larger
    }
    assert batches == {
        ("resnet50_v1.5", "train", 2), ("resnet50_v1.5", "inference", 4), ("bert_base", "train", 1),
    }  # fmt: skip
    assert len(actual.larger) > len(CATALOG.frameworks)
    for case, base in actual.larger.items():
        assert case == base._replace(batch_per_device=4 * base.batch_per_device)
    note_expected(actual)
    noted = {entry.case._replace(source="") for entry in load_expected(tmp_path)[0]}
    assert not noted & {*actual.larger}, (
        "larger batches, which only leaders run, are noted as missing"
    )


def test_devices_of_a_case_share_the_cores_and_their_batch(tmp_path: Path) -> None:
    suite = changed(devices_per_node=[1, 2], batch_per_device=["3 per core", 5])
    actual = plan(tmp_path, suite, machine=Machine(8, 0))
    assert {case.batch_per_device for case in actual.folders} == {12, 5}


def with_variant(tmp_path: Path, **variant: Any) -> Plan:
    axes = {**SUITE["axes"], "framework": ["pytorch"]}
    return plan(tmp_path, {**SUITE, "axes": axes, "variants": {"default": None, "other": variant}})


def test_runs_of_a_variant_with_variables_are_reported_and_are_others(tmp_path: Path) -> None:
    made = with_variant(tmp_path, variables={"LD_PRELOAD": "own.so"})
    arguments = {run.case.variant: commands.arguments(made, run) for run in made.runs}
    assert arguments["other"][-2:] == ["--variable", "LD_PRELOAD=own.so"]
    assert "--variable" not in arguments["default"]
    before = with_variant(tmp_path).folders
    after = made.folders
    changed = {case.variant for case in after if after[case] != before[case]}
    assert changed == {"other"}


def test_settings_of_a_variant_are_conditions_that_tables_show() -> None:
    settings = {"accelerator": "cpu", "cores_per_device": 1}
    usual = conditions.conditions_from_settings(settings)
    before = conditions.conditions_from_settings({**settings, "preload": "jemalloc"})
    assert usual != before, "an allocator in an older record is ignored"
    theirs = conditions.conditions_from_settings({**settings, "source": "torchvision"})
    assert (usual.model_source, theirs.model_source) == ("", "torchvision")
    runs = [*repeats(100.0), *repeats(99.0, model_source="torchvision")]
    table = Inputs(group(runs, {})).frame_of(WEAK)
    assert len(table) == 2, "repeats of one code and of another share no median"
    text = in_markdown("weak_scaling", table)
    assert "| code by |" in text
    assert "| torchvision |" in text
