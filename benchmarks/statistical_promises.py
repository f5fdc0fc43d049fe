"""Whether the statistics keep what they promise, at full size: coverage of the intervals, false
differences called by a comparison, and its power. Seeded; prints what was found beside the promise
and ends with 1 where one is missed. Takes a quarter of an hour on one core.

    .venv/bin/python benchmarks/statistical_promises.py [DRAWS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT)]

from framebench import intervals  # noqa: E402

from tests.framebench.distributions import SAMPLERS, true_median  # noqa: E402

DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
NOMINAL, POINTS = 0.95, 0.02
FAMILY, REPEATS, NOISE, CHANGE = 20, 7, 0.005, 0.02
missed = []


def show(what: str, found: float, promise: str, kept: bool) -> None:
    print(f"{what:<58} {found:7.4f}  {promise}{'' if kept else '  MISSED'}", flush=True)
    if not kept:
        missed.append(what)


def within(found: float) -> bool:
    return abs(found - NOMINAL) <= POINTS


def coverage_of_medians() -> None:
    for name, sampler in SAMPLERS.items():
        for count in (6, 7, 10, 20):
            draws = sampler(np.random.default_rng(0), (DRAWS, count)).tolist()
            found = [intervals.median_interval(values) or (1, 0) for values in draws]
            held = np.mean([low <= true_median(name) <= high for low, high in found])
            show(f"interval of the median, {name}, {count} repeats", held, "0.93 .. 0.97",
                 within(held))  # fmt: skip


def coverage_of_ratios() -> None:
    for name, sampler in SAMPLERS.items():
        for count in (5, 7, 10):
            random = np.random.default_rng(0)
            base = sampler(random, (DRAWS, count)).tolist()
            candidate = (1.05 * sampler(random, (DRAWS, count))).tolist()
            found = [
                intervals.ratio_interval(*pair) or (2, 0)
                for pair in zip(base, candidate, strict=True)
            ]
            held = np.mean([low <= 1.05 <= high for low, high in found])
            show(f"interval of a ratio, {name}, {count} repeats", held, "0.93 .. 0.97",
                 within(held))  # fmt: skip


def comparisons() -> None:
    random = np.random.default_rng(0)
    families = DRAWS // FAMILY
    called = detected = wrong = discoveries = 0.0
    for _ in range(families):
        base, candidate = random.normal(1, NOISE, (2, FAMILY, REPEATS))
        same = [intervals.rank_test(*pair) for pair in zip(base, candidate, strict=True)]
        called += min(intervals.adjusted(same)) <= 0.05
        candidate[:5] *= 1 - CHANGE
        changed = [intervals.rank_test(*pair) for pair in zip(base, candidate, strict=True)]
        below = np.array(intervals.adjusted(changed)) <= 0.05
        detected += below[:5].mean()
        wrong += below[5:].sum() / max(below.sum(), 1)
        discoveries += below.sum()
    show(f"equal suites of {FAMILY} cases with a difference called", called / families,
         "at most 0.05", called / families <= 0.055)  # fmt: skip
    show("false part of all differences called, 5 of 20 changed", wrong / families,
         "at most 0.05", wrong / families <= 0.055)  # fmt: skip
    show(f"{CHANGE:.0%} slower found, {REPEATS} repeats, {NOISE:.1%} noise", detected / families,
         "at least 0.95", detected / families >= 0.95)  # fmt: skip


if __name__ == "__main__":
    print(f"{DRAWS} draws")
    coverage_of_medians()
    coverage_of_ratios()
    comparisons()
    sys.exit(1 if missed else 0)
