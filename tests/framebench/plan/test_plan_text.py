"""What the plan says in words."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

from framebench.plan import plan_text


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
        "2 run(s) timed out and count as done: --config retry=timeout runs them again "
        "(time_limit was 210 to 212 s and is 7200 s now)"
    )
    assert no_memory.startswith("1 run(s) ran out of memory and count as done")
    assert "retry=oom" in no_memory
    assert "memory_limit is auto" in no_memory
