"""Recompilations within the timed region."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.measuring import steps


def compiling(*reasons: str) -> Any:
    """Return an adapter whose compiler compiled anew for these ``reasons``."""
    return SimpleNamespace(
        case=SimpleNamespace(compiler="inductor"),
        recompilations=lambda: list(reasons),
        compiled=lambda: {"frames": 9, "frames_compiled": 8},
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
