"""Changes in series of result sets."""

from __future__ import annotations

from collections.abc import Iterator

from tests.framebench.statistics import series

from . import PromiseRow, near

#: Series without a change.
STEADY: dict[str, series.Draw] = {
    "equal noise": series.steady_series,
    "noise of five times the size in the last fifth": series.changing_noise(5, 0.8, 1),
    "heavy tails (held out)": series.heavy_tails,
    "a fifth of the noise in the last third (held out)": series.changing_noise(0.2, 0.67, 1),
}
#: Percent of series of 20 sets in which a jump of four standard deviations is found, by the
#: correlation of the noise, as in docs/history.md.
FOUND = {0.0: 99, 0.3: 92, 0.6: 78}


def rows(draws: int) -> Iterator[PromiseRow]:
    draws //= 10
    for related, percent in FOUND.items():
        for name, draw in STEADY.items():
            limit = 0.05 if draw is series.steady_series else series.CHANGING_NOISE_CALLED[related]
            for count in (10, 20, 40):
                alarms = series.called(draw, count, related, draws)
                promise = f"unchanged series called changed, {count} sets"
                yield PromiseRow(promise, f"{name}, r = {related}", alarms, draws, 0, limit)
        found = series.called(series.jumping(4 * series.NOISE, 10), 20, related, draws)
        promise, sampler = "a change found, 20 sets", f"a jump of four deviations, r = {related}"
        yield PromiseRow(promise, sampler, found, draws, *near(percent, 2))
        found = series.called(series.jumping(series.STEP, 3), 20, related, draws)
        sampler = f"a jump of six deviations 3 sets ago, r = {related}"
        yield PromiseRow(promise, sampler, found, draws)
