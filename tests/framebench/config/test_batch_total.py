"""``batch_total``: the total batch of all devices, whatever their number."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from framebench.cases.matrix import cases
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan.plan import Plan
from framebench.plan.plan_text import describe

from ..settings import AXES_WITHOUT_BATCH, CATALOG, SUITE, plan, settings

plan_of = partial(plan, machine=Machine(8, 0))
STRONG = {"devices_per_node": [1, 2, 4], "batch_total": [64]}


def suite_of(include: list[Any] | None = None, **axes: Any) -> dict[str, Any]:
    return {**SUITE, "axes": {**AXES_WITHOUT_BATCH, **axes}, "include": include or []}


def batches(made: Plan) -> list[tuple[str, int | str]]:
    return [(case.topology, case.batch_per_device) for case in made.folders]


def test_devices_share_the_batch(tmp_path: Path) -> None:
    made = plan_of(tmp_path, suite_of(**STRONG))
    assert batches(made) == [("1n1g", 64), ("1n2g", 32), ("1n4g", 16)]
    assert {case.batch_total for case in made.folders} == {64}
    suite = settings(tmp_path, suite_of(**STRONG, nodes=[1, 2])).suite
    of_nodes = [(case.topology, case.batch_per_device) for case in cases(suite, CATALOG)]
    assert of_nodes[3:] == [("2n1g", 32), ("2n2g", 16), ("2n4g", 8)]


def test_a_case_of_both_series_is_measured_once(tmp_path: Path) -> None:
    weak = {"devices_per_node": [1, 2], "batch_per_device": [32, 64]}
    made = plan_of(tmp_path, suite_of([{"batch_total": [64]}], **weak))
    # 1 x 64 and 2 x 32 belong to weak and strong scaling; no case is for strong scaling alone
    assert batches(made) == [("1n1g", 32), ("1n1g", 64), ("1n2g", 32), ("1n2g", 64)]
    assert len(made.runs) == 4 * SUITE["repeats"]
    asked = plan_of(tmp_path, suite_of(**weak))
    assert made.folders == asked.folders, "another name for the same measurement"


def test_what_cannot_be_shared_is_left_out_with_its_reason(tmp_path: Path) -> None:
    made = plan_of(tmp_path, suite_of(devices_per_node=[1, 2, 3, 4], batch_total=[64, 6]))
    assert ("1n3g", 2) in batches(made)
    reasons = {(str(case).split(" batch ")[1], reason) for case, reason in made.left_out}
    assert reasons == {
        ("64/3 (total 64)", "a total batch of 64 is not divisible by 3 devices"),
        ("6/4 (total 6)", "a total batch of 6 is not divisible by 4 devices"),
    }
    assert "a total batch of 64 is not divisible by 3 devices" in describe(made)


def test_a_pattern_excludes_a_total_batch_whoever_asked_for_it(tmp_path: Path) -> None:
    both = suite_of([{"batch_per_device": [32]}], devices_per_node=[1, 2, 3], batch_total=[64])
    made = plan_of(tmp_path, {**both, "exclude": [{"batch_total": [64]}]})
    assert batches(made) == [("1n1g", 32), ("1n3g", 32)]
    assert not made.left_out, "64 over 3 devices is a total batch of 64, too"
    with pytest.raises(ConfigError, match=r"exclude\[0\].*batch_total.*matches no case"):
        plan_of(tmp_path, {**both, "exclude": [{"batch_total": [65]}]})
    searched = suite_of(batch_per_device=[2, "max"])
    kept = plan_of(tmp_path, {**searched, "exclude": [{"batch_total": [2]}]})
    assert [case.batch_per_device for case in kept.cases] == ["max"], (
        "a batch that is still to be found is not excluded"
    )
