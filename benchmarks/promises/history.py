"""Changes in series of result sets."""

from __future__ import annotations

from collections.abc import Iterator

from tests.framebench.statistics.series import (
    CHANGING_NOISE_CALLED,
    FOUND,
    UNCHANGED,
    UNCHANGED_KEPT_ASIDE,
    called,
    late_jump,
    small_jump,
    steady_series,
    two_jumps,
)

from .row import PromiseRow

STEADY = {
    "equal noise": steady_series,
    **UNCHANGED,
    **{f"{name} (kept aside)": draw for name, draw in UNCHANGED_KEPT_ASIDE.items()},
}


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about series, by the correlation of their noise."""
    fewer = draws // 10
    for related, part in FOUND.items():
        for name, draw in STEADY.items():
            limit = 0.05 if draw is steady_series else CHANGING_NOISE_CALLED[related]
            for count in (10, 20, 40):
                alarms = called(draw, count, related, fewer)
                promise = f"unchanged, called changed, {count} sets"
                yield PromiseRow(promise, f"{name}, r = {related}", alarms, fewer, 0, limit)
        found = called(small_jump, 20, related, fewer)
        promise, sampler = "a change found, 20 sets", f"a jump of four deviations, r = {related}"
        yield PromiseRow(promise, sampler, found, fewer, part - 0.02, min(1.0, part + 0.02))
        for last in (3, 5):
            found = called(late_jump(last), 20, related, fewer)
            sampler = f"a jump of six deviations {last} sets ago, r = {related}"
            yield PromiseRow(promise, sampler, found, fewer)
        found = called(two_jumps, 45, related, fewer)
        sampler = f"two jumps of six deviations, r = {related}"
        yield PromiseRow("a change found, 45 sets", sampler, found, fewer)
