"""Changes in series of result sets."""

from __future__ import annotations

from collections.abc import Iterator

from tests.framebench.statistics.series import (
    DRIFTS_CALLED_JUMPS,
    FOUND,
    called,
    drifting,
    small_jump,
    steady_series,
)

from .row import PromiseRow


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about series, by the correlation of their noise."""
    fewer = draws // 10
    for related, most in DRIFTS_CALLED_JUMPS.items():
        sampler = f"correlation {related}"
        for count in (10, 20, 40):
            alarms = 1 - called(steady_series, count, related, fewer).get("none", 0)
            yield PromiseRow(
                f"unchanged, called changed, {count} sets", sampler, alarms, fewer, 0, 0.05
            )
        kinds = called(drifting, 30, related, fewer).items()
        jumps = sum(rate for names, rate in kinds if "jump" in names.split(", "))
        yield PromiseRow("a drift called a jump, 30 sets", sampler, jumps, fewer, 0, most)
        found, part = 1 - called(small_jump, 20, related, fewer).get("none", 0), FOUND[related]
        promise = "a jump of four deviations found, 20 sets"
        yield PromiseRow(promise, sampler, found, fewer, part - 0.02, part + 0.02)
