"""Recompilations: within the timed region, and before a failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from harness.measuring import failure, steps


def compiling(*reasons: str, compiler: str = "inductor") -> Any:
    """Return an adapter whose compiler compiled anew for these ``reasons``."""
    return SimpleNamespace(
        case=SimpleNamespace(compiler=compiler),
        recompilations=lambda: list(reasons),
        compiled=lambda: {"frames": 9, "frames_compiled": 8},
        out_of_memory=lambda error: "memory" in str(error),
    )


def test_what_is_compiled_in_the_timed_region_is_counted_with_what_is_left_to_eager_mode() -> None:
    fields: dict[str, Any] = {"compiled": {"frames": 2, "frames_compiled": 2}}
    steps.note_recompilations(compiling("n == 1"), 1, fields)
    assert fields == {"compiled": {"frames": 2, "frames_compiled": 2}}
    steps.note_recompilations(compiling("n == 1", "n == 2", "n == 3", "n == 3"), 1, fields)
    assert fields["compiled"] == {
        "frames": 9,
        "frames_compiled": 8,
        "recompiled_in_window": {"count": 3, "reasons": ["n == 2", "n == 3"]},
    }


@pytest.mark.parametrize(
    ("adapter", "reason"),
    [
        (
            compiling("n == 1", "n == 2"),
            "RuntimeError: no (recompiled 2 times; last reason: n == 2)",
        ),
        (compiling(), "RuntimeError: no"),
        (compiling("n == 1", compiler="none"), "RuntimeError: no"),
        (None, "RuntimeError: no"),
    ],
)
def test_a_failure_says_how_often_and_why_the_compiler_compiled_anew(
    adapter: Any, reason: str
) -> None:
    actual = failure.describe(RuntimeError("no"), adapter)
    assert actual == {"status": "failed", "reason": reason}


def test_memory_that_ran_out_is_not_put_down_to_the_compiler() -> None:
    actual = failure.describe(RuntimeError("no memory"), compiling("n == 1"))
    assert actual == {"status": "oom", "reason": "RuntimeError: no memory"}
