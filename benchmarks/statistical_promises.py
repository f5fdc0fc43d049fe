"""Full-size simulation of all statistical promises, seeded.

    .venv/bin/python benchmarks/statistical_promises.py [DRAWS]

Covers intervals, also with repeats until they are narrow; false differences and power of
comparisons, also of pairs under machine drift; unsteady timed regions, stalls, gates of
comparisons, changes in series, and odd repeats. Performance gates are in `gate_power.py`. Prints
each result next to its promise. Ends with 1 if one is missed by more than three standard errors of
the simulation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT)]

from framebench.config.repeats import AUTO  # noqa: E402
from framebench.plan.repeats import wanted  # noqa: E402
from framebench.statistics import intervals, shape, signed_rank, steady  # noqa: E402

from tests.framebench.made_up_runs import repeats  # noqa: E402
from tests.framebench.statistics.distributions import (  # noqa: E402
    DRIFTS,
    SAMPLERS,
    UNDER_DRIFT,
    drifting,
    held_under_drift,
    step_times,
    true_median,
)
from tests.framebench.statistics.series import (  # noqa: E402
    DRIFTS_CALLED_JUMPS,
    FOUND,
    called,
    small_jump,
    steady_series,
)
from tests.framebench.statistics.series import drifting as slow_drift  # noqa: E402
from tests.framebench.statistics.steps import (  # noqa: E402
    COUNTS,
    HANGING_TOGETHER,
    NOT_STEADY,
    POWER,
    STALLED,
    STEADY,
    UNSTALLED,
)

DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
FEWER = DRAWS // 10  # for slow simulations
COVERED = (0.93, 0.97)  # 95 %, within 2 points
FAMILY, REPEATS, NOISE, CHANGE = 20, 7, 0.005, 0.02
PAIRS, CHANGE_OF_PAIRS = 12, 0.05
missed = []


def show(what: str, found: float, low: float, high: float, draws: int) -> None:
    """Print a fraction of ``draws`` that should lie between ``low`` and ``high``; note a miss."""
    error = 3 * max((edge * (1 - edge) / draws) ** 0.5 for edge in (low, high))
    kept = low - error <= found <= high + error
    print(f"{what:<58} {found:7.4f}  {low:.2f} .. {high:.2f}{'' if kept else '  MISSED'}")
    sys.stdout.flush()
    if not kept:
        missed.append(what)


def coverage_of_medians() -> None:
    for name, sampler in SAMPLERS.items():
        for count in (6, 7, 10, 20):
            draws = sampler(np.random.default_rng(0), (DRAWS, count)).tolist()
            found = [intervals.median_interval(values) or (1, 0) for values in draws]
            held = np.mean([low <= true_median(name) <= high for low, high in found])
            show(f"interval of the median, {name}, {count} repeats", held, *COVERED, DRAWS)


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
            show(f"interval of a ratio, {name}, {count} repeats", held, *COVERED, DRAWS)


def comparisons() -> None:
    random = np.random.default_rng(0)
    families = DRAWS // FAMILY
    called = detected = wrong = 0.0
    for _ in range(families):
        base, candidate = random.normal(1, NOISE, (2, FAMILY, REPEATS))
        same = [intervals.rank_test(*pair) for pair in zip(base, candidate, strict=True)]
        called += min(intervals.adjusted(same)) <= 0.05
        candidate[:5] *= 1 - CHANGE
        changed = [intervals.rank_test(*pair) for pair in zip(base, candidate, strict=True)]
        below = np.array(intervals.adjusted(changed)) <= 0.05
        detected += below[:5].mean()
        wrong += below[5:].sum() / max(below.sum(), 1)
    equal = f"equal suites of {FAMILY} cases with a difference called"
    show(equal, called / families, 0, 0.05, families)
    part = "false part of all differences called, 5 of 20 changed"
    show(part, wrong / families, 0, 0.05, families)
    power = f"{CHANGE:.0%} slower found, {REPEATS} repeats, {NOISE:.1%} noise"
    show(power, detected / families, 0.95, 1, families)


def coverage_of_pairs() -> None:
    for name, sampler in SAMPLERS.items():
        for count in (6, 7, 12):
            random = np.random.default_rng(0)
            own = sampler(random, (DRAWS, count, 2))
            runs = drifting(random, DRAWS, count) * own
            ratios = (1.05 * runs[..., 1] / runs[..., 0]).tolist()
            found = [signed_rank.interval(one) or (2, 0) for one in ratios]
            held = np.mean([low <= 1.05 <= high for low, high in found])
            show(f"interval of a ratio, {name}, {count} drifting pairs", held, *COVERED, DRAWS)


def coverage_under_drift() -> None:
    """Check coverage of the interval for sets, which ignores drift, under drift."""
    for at, related in enumerate(DRIFTS):
        for name, held in held_under_drift(FEWER, related).items():
            promised = UNDER_DRIFT[name][at] / 100
            low, high = max(0.0, promised - 0.03), min(1.0, promised + 0.03)
            show(f"{name[:40]}, related {related}", held, low, high, FEWER)


def coverage_of_percentiles() -> None:
    """Check coverage of the p95 of 130 steps, the 124th value."""
    p95 = np.sort(step_times(np.random.default_rng(0), 7 * FEWER), axis=1)[:, 123]
    found = [intervals.median_interval(one) or (1, 0) for one in p95.reshape(FEWER, 7).tolist()]
    held = np.mean([low <= np.median(p95) <= high for low, high in found])
    show("interval of a p95, 7 repeats", held, *COVERED, FEWER)


def comparisons_of_pairs() -> None:
    """Check comparisons of pairs whose only noise is machine drift."""
    for count in (6, 7, PAIRS):
        runs = drifting(np.random.default_rng(0), DRAWS, count)
        ratios = (runs[..., 1] / runs[..., 0]).tolist()
        called = np.mean([signed_rank.p_value(one) <= 0.05 for one in ratios])
        show(f"equal sides called different, {count} drifting pairs", called, 0, 0.05, DRAWS)
    base, candidate = runs[..., 0].tolist(), ((1 - CHANGE_OF_PAIRS) * runs[..., 1]).tolist()
    sides = list(zip(base, candidate, strict=True))
    paired = np.mean([signed_rank.p_value(np.divide(c, b)) <= 0.05 for b, c in sides])
    as_sets = np.mean([intervals.rank_test(b, c) <= 0.05 for b, c in sides])
    found = f"{CHANGE_OF_PAIRS:.0%} slower found, {PAIRS} drifting pairs"
    show(found, paired, 0.9, 1, DRAWS)
    show(f"{found}, looked at as sets", as_sets, 0, paired, DRAWS)


def repeats_until_narrow() -> None:
    for name, sampler in SAMPLERS.items():
        random = np.random.default_rng(0)
        held = 0
        for _ in range(FEWER):
            values = sampler(random, (AUTO.at_least,)).tolist()
            while (asked := wanted(repeats(*values), AUTO)) > len(values):
                values += sampler(random, (asked - len(values),)).tolist()
            low, high = intervals.median_interval(values) or (1, 0)
            held += low <= true_median(name) <= high
        what = f"interval of the median, {name}, repeats: auto"
        show(what, held / FEWER, *COVERED, FEWER)


def windows() -> None:
    for name, draw in {**STEADY, **NOT_STEADY}.items():
        alarms = HANGING_TOGETHER if name == "hanging together" else steady.SIGNIFICANCE
        low, high = (0.9, 1) if name in NOT_STEADY else (0, alarms)
        for count in (100, 500) if name in NOT_STEADY else (20, 100, 500):
            random = np.random.default_rng(0)
            found = np.mean(
                [bool(steady.unsteady(draw(random, count).tolist())) for _ in range(FEWER)]
            )
            show(f"unsteady: {name}, {count} steps", found, low, high, FEWER)
    for name, (draw, percent) in POWER.items():
        for count, power in zip(COUNTS, percent, strict=True):
            random = np.random.default_rng(0)
            found = np.mean(
                [bool(steady.unsteady(draw(random, count).tolist())) for _ in range(FEWER)]
            )
            low, high = max(0.0, power / 100 - 0.02), min(1.0, power / 100 + 0.02)
            show(f"unsteady: {name}, {count} steps", found, low, high, FEWER)


def stalls() -> None:
    promises = {name: (draw, 0.98, 1.0) for name, draw in STALLED.items()}
    promises |= {name: (draw, 0.0, most) for name, (draw, most) in UNSTALLED.items()}
    for name, (draw, low, high) in promises.items():
        for count in (16, 30, 100):
            random = np.random.default_rng(0)
            windows = [draw(random, count).tolist() for _ in range(DRAWS)]
            found = np.mean([steady.stall(window) is not None for window in windows])
            show(f"a stall: {name}, {count} steps", found, low, high, DRAWS)


def gates() -> None:
    """Check how often a whole interval lies beyond a threshold of 5 %, by the true factor."""
    for factor, low, high in ((0.95, 0, 0.025), (0.955, 0, 0.001), (0.93, 0.95, 1)):
        random = np.random.default_rng(0)
        base = random.normal(1, NOISE, (DRAWS, REPEATS)).tolist()
        candidate = (factor * random.normal(1, NOISE, (DRAWS, REPEATS))).tolist()
        found = [
            intervals.ratio_interval(*pair) or (0, 2) for pair in zip(base, candidate, strict=True)
        ]
        held = np.mean([high_end < 0.95 for _, high_end in found])
        what = f"shown to be over 5 % slower, in truth {1 - factor:.1%}, {REPEATS} repeats"
        show(what, held, low, high, DRAWS)


def changes_of_series() -> None:
    """Check changes found in series of result sets, by the correlation of their noise."""
    for related, most in DRIFTS_CALLED_JUMPS.items():
        for count in (10, 20, 40):
            alarms = 1 - called(steady_series, count, related, FEWER).get("none", 0)
            show(f"a change, of {count} sets without one, r {related}", alarms, 0, 0.05, FEWER)
        kinds = called(slow_drift, 30, related, FEWER).items()
        jumps = sum(rate for names, rate in kinds if "jump" in names.split(", "))
        show(f"a jump, of a drift over 30 sets, r {related}", jumps, 0, most, FEWER)
        found, part = 1 - called(small_jump, 20, related, FEWER).get("none", 0), FOUND[related]
        what = f"a change, of a jump in 20 sets, r {related}"
        show(what, found, part - 0.02, part + 0.02, FEWER)


def odd_repeats() -> None:
    for count in (6, 7, 10, 20):
        sets = np.random.default_rng(1).normal(100, 2, (DRAWS, count)).tolist()
        apart = np.mean([bool(shape.outliers(values)) for values in sets])
        two = np.mean([shape.modes(values) is not None for values in sets])
        for what, found in (("an outlier", apart), ("two modes", two)):
            show(f"{what} among {count} normal repeats", found, 0, shape.SIGNIFICANCE, DRAWS)


if __name__ == "__main__":
    print(f"{DRAWS} draws")
    coverage_of_medians()
    coverage_of_ratios()
    comparisons()
    coverage_of_pairs()
    coverage_under_drift()
    coverage_of_percentiles()
    comparisons_of_pairs()
    repeats_until_narrow()
    windows()
    stalls()
    gates()
    changes_of_series()
    odd_repeats()
    sys.exit(1 if missed else 0)
