"""Text of the plan."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from core.gpus import Gpu
from framebench.cases.fitting import LeftOut
from framebench.config.settings import load_settings
from framebench.machine.local import Machine
from framebench.plan import call_text, plan_text
from framebench.plan.planning import Plan, make_plan
from framebench.records.expected import TOO_SLOW

from ..settings import CATALOG, CONFIG, changed, plan

H100 = Gpu("NVIDIA H100", 80 * 2**30, "580.95.05", "", "", "9.0")


def test_runs_that_a_retry_might_let_through_are_named() -> None:
    statuses = ("ok", "", "unsupported", "timeout", "oom", "timeout")
    plan: Any = SimpleNamespace(runs=[SimpleNamespace(status=status) for status in statuses])
    no_memory, timed_out = plan_text.left_as_they_are(plan)
    assert no_memory.startswith("1 run(s) out of memory and count as done")
    assert timed_out == (
        "2 run(s) timed out and count as done; --config retry=timeout repeats them"
    )


def test_each_reason_for_leaving_cases_out_is_a_line_in_words(tmp_path: Path) -> None:
    made = plan(tmp_path, changed(framework=["jax", "pytorch", "mxnet"]))
    jax, pytorch, _ = sorted(made.folders, key=lambda case: case.framework != "jax")
    slow = f"{TOO_SLOW}10 minutes; to include it: --config time_budget=1646"
    left = [LeftOut(jax, "too large"), LeftOut(pytorch, "too large"), LeftOut(pytorch, slow)]
    too_large, too_slow = call_text.left_out(replace(made, left_out=left))
    for text in ("2 cases", "JAX", "ResNet-50 v1.5 training", "too large"):
        assert text in too_large
    assert too_slow.startswith("Too slow for 10 minutes")
    assert too_slow.endswith("--config time_budget=1646")
    assert call_text.left_out(made) == []


AMX = frozenset({"avx512f", "amx_bf16"})


def quick(tmp_path: Path, machine: Machine, **config: Any) -> Plan:
    given = {**CONFIG, "suite": "quick", "results": str(tmp_path), **config}
    return make_plan(load_settings(given, CATALOG), CATALOG, machine, None)


def test_a_call_begins_with_what_it_measures_for_how_long(tmp_path: Path) -> None:
    made = quick(tmp_path, Machine(2, 0, instruction_sets=AMX))
    first, processor = call_text.opening(made, 9, "", 0.0)
    for text in ("9 environments", "at most 10 minutes", "BERT", "9 frameworks"):
        assert text in first
    for text in ("bfloat16 (AMX)", "MXNet, PyTorch and TensorFlow 2", "the others have none"):
        assert text in processor
    assert not any("has no amp" in line for line in call_text.left_out(made)), "said already"
    one = plan(tmp_path, changed())
    (only,) = call_text.opening(one, 0, "2 runs", 60.0)
    assert "PyTorch: 2 runs" in only


def test_a_round_is_named_by_its_runs(tmp_path: Path) -> None:
    made = quick(tmp_path, Machine(2, 0), frameworks=["jax", "pytorch"])
    pairs = [run for run in made.reserve if run.repeat == 2 and run.case not in made.larger]
    assert call_text.ahead(made, pairs) == ["next: repeats of JAX and PyTorch (2 of 7)"]
    (first,) = call_text.ahead(made, made.runs)
    assert first.startswith("next: first runs of ResNet-50 v1.5 inference")
    larger = [run for run in made.reserve if run.case in made.larger]
    assert "4 times the batch" in call_text.ahead(made, larger)[-1]


def test_the_plan_of_a_budget_says_what_each_call_answers(tmp_path: Path) -> None:
    made = quick(tmp_path, Machine(16, 8, devices=(H100,) * 8))
    text = plan_text.describe(made)
    assert "on 8 GPUs" in text
    calls = re.findall(r"^  call (\d): (.+)$", text, re.MULTILINE)
    assert [number for number, _ in calls] == ["1", "2", "3"]
    assert "first figures of" in calls[0][1]
    everything = " ".join(what for _, what in calls)
    assert "training" in everything
    assert re.search(r"all of it: \d+ calls", text)


def test_few_cases_are_named_as_the_key_takes_them(tmp_path: Path) -> None:
    """Fail if few cases are not named in the notation of the key ``cases``."""
    few = changed(batch_per_device=[2, 4])
    lines = [line.strip() for line in plan_text.describe(plan(tmp_path, few)).splitlines()]
    names = lines[lines.index("Cases, as --config cases=.. takes them:") + 1 :][:2]
    for name in names:
        narrowed = plan(tmp_path, few, cases=[name])
        assert [str(case) for case in narrowed.folders] == [name]
    many = changed(batch_per_device=list(range(1, plan_text.MOST_NAMES + 2)))
    text = plan_text.describe(plan(tmp_path, many))
    assert "pytorch resnet50_v1.5 train fp32" not in text
