"""Text of the plan."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from framebench.plan import plan_text

from ..settings import changed, plan


def said(*statuses: str) -> list[str]:
    settings = SimpleNamespace(time_limit=7200.0, memory_limit=None, cluster=None)
    limits = itertools.count(209)
    runs = [SimpleNamespace(status=status, limit=next(limits), case="") for status in statuses]
    plan: Any = SimpleNamespace(runs=runs, settings=settings, minutes={})
    return plan_text.left_as_they_are(plan)


def test_runs_that_a_higher_limit_might_let_through_are_named() -> None:
    assert said("ok", "", "unsupported") == []
    timed_out, no_memory = said("ok", "timeout", "oom", "timeout")
    assert timed_out == (
        "2 run(s) timed out and count as done; --config retry=timeout repeats them "
        "(time_limit was 210 to 212 s and is 7200 s now)"
    )
    assert no_memory.startswith("1 run(s) ran out of memory and count as done")
    assert "retry=oom" in no_memory
    assert "memory_limit is auto" in no_memory


def test_each_reason_for_leaving_cases_out_is_a_line() -> None:
    def case(framework: str) -> Any:
        return SimpleNamespace(framework=framework, model="toy")

    reasons = [("jax", "needs 2 devices"), ("pytorch", "needs 2 devices"), ("jax", "too large")]
    left: Any = [SimpleNamespace(case=case(name), reason=why) for name, why in reasons]
    plan: Any = SimpleNamespace(left_out=left)
    assert plan_text.left_out(plan) == [
        "Left out: 2 case(s) (jax, pytorch; toy): needs 2 devices",
        "Left out: 1 case(s) (jax; toy): too large",
    ]
    assert plan_text.left_out(SimpleNamespace(left_out=[])) == []  # type: ignore[arg-type]


def test_few_cases_are_named_as_the_key_takes_them(tmp_path: Path) -> None:
    """Fail if few cases are not named in the notation of the key ``cases``.
    With many cases, the plan says how to get their names."""
    few = changed(batch_per_device=[2, 4])
    lines = [line.strip() for line in plan_text.describe(plan(tmp_path, few)).splitlines()]
    names = lines[lines.index("Cases, as --config cases=.. takes them:") + 1 :][:2]
    for name in names:
        narrowed = plan(tmp_path, few, cases=[name])
        assert [str(case) for case in narrowed.folders] == [name]
    many = changed(batch_per_device=list(range(1, plan_text.MOST_NAMES + 2)))
    text = plan_text.describe(plan(tmp_path, many))
    assert "pytorch resnet50_v1.5 train fp32" not in text
    assert "frameworks=NAME" in text
