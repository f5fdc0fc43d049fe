"""Equivalence of two means: against SciPy, and simulated error rates, also for discrete scores."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.statistics import equivalence
from scipy import stats

MARGIN = 0.01
TRIALS = 1000


def test_the_intervals_are_those_of_scipy() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(0.98, 0.004, 5).tolist(), random.normal(0.985, 0.002, 7).tolist()
    actual = equivalence.compare(first, second, MARGIN)
    assert actual is not None
    welch = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.90)
    assert actual.interval == pytest.approx((welch.low, welch.high))
    assert actual.mean == pytest.approx(np.mean(second) - np.mean(first))
    alone = stats.t.interval(0.95, 4, np.mean(first), stats.sem(first))
    assert equivalence.mean_interval(first) == pytest.approx(alone)
    assert equivalence.deviation(first) == pytest.approx(np.std(first, ddof=1))


def test_both_one_sided_tests_reject_exactly_where_it_is_the_same() -> None:
    random = np.random.default_rng(1)
    said = set()
    for shift in np.linspace(-0.015, 0.015, 60):
        first, second = random.normal(0, 0.004, 6), random.normal(shift, 0.004, 6)
        above = stats.ttest_ind(second + MARGIN, first, equal_var=False, alternative="greater")
        below = stats.ttest_ind(second - MARGIN, first, equal_var=False, alternative="less")
        actual = equivalence.compare(first.tolist(), second.tolist(), MARGIN)
        assert actual is not None
        both = max(above.pvalue, below.pvalue) < equivalence.LEVEL
        assert both == (actual.verdict == equivalence.SAME)
        said.add(actual.verdict)
    assert said == {equivalence.SAME, equivalence.ANOTHER, equivalence.CANNOT_TELL}


def called(difference: float, verdict: str, samples: int | None = None) -> float:
    """Return the fraction of trials of five seeds each in which two means get this verdict.
    ``samples``: number of samples of a score that counts correct ones."""
    random = np.random.default_rng(2)

    def draw(mean: float) -> list[float]:
        if samples is None:
            return random.normal(mean, 0.004, 5).tolist()
        return (random.binomial(samples, mean, 5) / samples).tolist()

    actual = [
        equivalence.compare(draw(0.98), draw(0.98 + difference), MARGIN) for _ in range(TRIALS)
    ]
    return (
        sum(difference is not None and difference.verdict == verdict for difference in actual)
        / TRIALS
    )


@pytest.mark.parametrize("samples", [None, 360])
def test_what_is_apart_by_the_margin_is_rarely_called_the_same(samples: int | None) -> None:
    """Fail if means that differ by the margin are called equal in more than 5 % of trials.
    Three standard errors are allowed."""
    assert called(MARGIN, equivalence.SAME, samples) < 0.05 + 3 * (0.05 * 0.95 / TRIALS) ** 0.5


def test_the_same_is_shown_and_what_is_apart_too() -> None:
    assert called(0.0, equivalence.SAME) > 0.8
    assert called(0.03, equivalence.ANOTHER) > 0.95
    assert called(0.0, equivalence.ANOTHER) < 0.01


def test_without_a_spread_nothing_is_said() -> None:
    assert equivalence.compare([0.98], [0.98, 0.99], MARGIN) is None
    assert equivalence.compare([0.98, 0.98], [0.98, 0.98], MARGIN) is None
    assert equivalence.mean_interval([0.98]) is None
    assert equivalence.mean_interval([1.0, 1.0, 1.0]) is None, "three seeds do not show certainty"


def test_few_scattered_seeds_show_nothing() -> None:
    """Fail if few scattered seeds are called equal, as a plain "no difference found" would."""
    first, second = [0.95, 0.99, 0.97], [0.98, 0.94, 0.99]
    assert stats.ttest_ind(first, second, equal_var=False).pvalue > 0.5
    actual = equivalence.compare(first, second, MARGIN)
    assert actual is not None
    assert actual.verdict == equivalence.CANNOT_TELL
