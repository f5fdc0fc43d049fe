"""By what the guesses of tasks are wrong, learned from those that have ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tasks import Guess, Task, Traits

#: By what all tasks that measure are longer or shorter than was guessed, for they share the
#: machine: the standard deviation of its logarithm before anything is known.
_OF_BOTH: dict[tuple[str, ...], float] = {(): 0.7}
#: The same of what the starts of tasks have in common that have the same of these traits.
_OF_START: dict[tuple[str, ...], float] = {
    (): 0.2,
    ("kind",): 0.3,
    ("kind", "framework"): 0.35,
    ("framework",): 0.3,
    ("framework", "mode", "compiler"): 0.3,
    ("model", "mode"): 0.3,
    ("devices",): 0.2,
}
#: The same of their work.
_OF_WORK: dict[tuple[str, ...], float] = {
    (): 0.3,
    ("mode",): 0.3,
    ("framework",): 0.6,
    ("framework", "precision", "compiler", "devices"): 0.3,
    ("model", "mode"): 0.4,
    ("framework", "model", "mode"): 0.3,
}
#: The same where no operations of a model are counted: it takes a time that is its own.
_OF_MEASURING: dict[tuple[str, ...], float] = {("kind", "mode"): 0.3}
#: The kinds that these are for. All others share nothing but their kind, of which the guess may be
#: far off: an environment is downloaded, or its packages are there.
_MEASURING = ("run", "search", "comparison", "probe")
_OF_OTHERS: dict[tuple[str, ...], float] = {("kind",): 2.0}
#: What was measured before shares the machine, which has drifted perhaps.
_OF_MEASURED: dict[tuple[str, ...], float] = {(): 0.1}
#: The same of a case besides all that it shares, of one that was measured before, and of a repeat.
_CASE, _MEASURED, _REPEAT = 0.25, 0.1, 0.1

#: What is a case's own, and chance, are larger or smaller by one factor. As many cases say before
#: anything is known that it is 1.
_STEADY = 10.0
#: What is off by more deviations than this counts less (Huber).
_FAR = 2.5
_PASSES = 5
#: Tasks of a kind without a smear beside those that have ended.
_UNSMEARED = 5.0
#: Of so many cases, the last that were new, what is shared is found: all of a large suite would
#: take long.
_MOST = 1000
#: It is found anew when so much more has ended.
_GROWTH = 1.02

Floats = NDArray[np.floating]
#: By how much the logarithm of some seconds grows with the effect of a number.
Slopes = list[tuple[int, float]]


class _Case:
    """The tasks of a case. ``starts``, ``works``: the numbers of the effects that it shares;
    ``ended``: how many have ended of which so much was guessed, and the mean of the logarithms of
    their seconds; ``weight``: of it, by Huber."""

    def __init__(self, task: Task, starts: list[int], works: list[int]) -> None:
        self.starts, self.works = starts, works
        self.deviation = _MEASURED if task.is_measured else _CASE
        self.ended: dict[Guess, tuple[int, float]] = {}
        self.count, self.weight = 0, 1.0

    def add(self, guess: Guess, seconds: float) -> None:
        count, mean = self.ended.get(guess, (0, 0.0))
        self.ended[guess] = count + 1, mean + (math.log(seconds) - mean) / (count + 1)
        self.count += 1

    @property
    def chance(self) -> float:
        """The variance of what has ended by chance alone."""
        return _REPEAT**2 / self.count

    @property
    def variance(self) -> float:
        """The same, besides what is shared with others."""
        return self.deviation**2 + self.chance

    @property
    def known(self) -> float:
        """The part of what is its own that its tasks have shown: nearly all where that is far."""
        return 1 - self.weight * self.chance / self.variance if self.count else 0.0


class Expected(NamedTuple):
    """``seconds`` of a task; ``own`` and ``shared``: variances of their logarithm, by chance and by
    what all tasks of its case share; ``slopes``: of what it shares with others."""

    seconds: float
    own: float
    shared: float
    slopes: Slopes


class Effects:
    """A task takes ``start x exp(sum of the effects of its start) + work x exp(sum of the effects
    of its work)``, times what is its case's own, times chance. The logarithms of all of these are
    normal with a mean of 0: a linear model with random effects (Robinson, *That BLUP is a good
    thing*, Statistical Science 6, 1991) for the logarithm of the seconds, which is linear near the
    estimate (Gauss and Newton). Cases that are far off count less (Huber). What is a case's own is
    eliminated. How large that and chance are is learned. Kinds, frameworks and models may be as far
    apart as was said before, however well those that have ended were guessed, and further where
    these are: that runs take what was guessed says nothing of certificates."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._deviations: list[float] = []
        self._cases: dict[Traits, _Case] = {}
        self._ended: dict[Traits, _Case] = {}
        self._count = self._fitted = 0
        self._effects: Floats = np.zeros(0)
        self._slopes: Floats = np.zeros((0, 0))
        self._weights: Floats = np.zeros(0)
        self._scale = 1.0
        self._smears: dict[str, float] = {}

    def add(self, task: Task, seconds: float) -> None:
        """It took so many."""
        case = self._ended[task.traits] = self._case(task)
        case.add(task.guess, max(seconds, 0.01))
        self._count += 1

    def expected(self, task: Task) -> Expected:
        """What is known of it by now."""
        self._fit()
        case = self._case(task)
        seconds, start = self._seconds(case, task.guess)
        off, shown = self._off(case)
        known, own = case.known, self._scale * _REPEAT**2
        shared = self._scale * (known * case.chance if known else case.deviation**2)
        slopes = [(n, start - known * shown) for n in case.starts]
        slopes += [(n, 1 - start - known * (1 - shown)) for n in case.works]
        smear = self._smears.get(task.traits.kind, 1.0) ** (1 - known)
        seconds *= math.exp(known * off) * smear
        return Expected(seconds, own, shared, slopes)

    def variance(self, slopes: Iterable[tuple[int, float]]) -> float:
        """Of what grows with the effects by these ``slopes``."""
        self._fit()
        of_each: dict[int, float] = defaultdict(float)
        for number, slope in slopes:
            of_each[number] += slope
        known = len(self._effects)
        seen = np.array([of_each.get(number, 0.0) for number in range(known)])
        new = ((slope, n) for n, slope in of_each.items() if n >= known)
        variance = sum((slope * self._deviations[n]) ** 2 for slope, n in new)
        return max(1.0, self._scale) * (variance + float(np.sum(seen * self._solved(seen))))

    def _case(self, task: Task) -> _Case:
        if task.traits not in self._cases:
            shared = ([self._number(*one) for one in _effects(task, part)] for part in (0, 1))
            self._cases[task.traits] = _Case(task, *shared)
        return self._cases[task.traits]

    def _number(self, effect: tuple[object, ...], deviation: float) -> int:
        if effect not in self._numbers:
            self._numbers[effect] = len(self._numbers)
            self._deviations.append(deviation)
        return self._numbers[effect]

    def _seconds(self, case: _Case, guess: Guess) -> tuple[float, float]:
        """As the effects have it, and the share of the start in them."""
        start, work = (
            seconds * math.exp(sum(self._effects[n] for n in numbers if n < len(self._effects)))
            for seconds, numbers in zip(guess, (case.starts, case.works), strict=True)
        )
        return start + work, start / (start + work)

    def _off(self, case: _Case) -> tuple[float, float]:
        """By how much the logarithm of its seconds is more than the effects have it, and the share
        of the start in those."""
        off = share = 0.0
        for guess, (count, mean) in case.ended.items():
            seconds, start = self._seconds(case, guess)
            off += count / case.count * (mean - math.log(seconds))
            share += count / case.count * start
        return off, share

    def _fit(self) -> None:
        """Find the effects anew where enough has ended since the last time."""
        if self._count == self._fitted or self._count < _GROWTH * self._fitted:
            return
        self._fitted = self._count
        cases = [*self._ended.values()][-_MOST:]
        new = np.zeros(len(self._deviations) - len(self._effects))
        self._effects = np.concatenate([self._effects, new])
        variances = np.array([case.variance for case in cases])
        for _ in range(_PASSES):
            off, shares = (np.array(one) for one in zip(*map(self._off, cases), strict=True))
            slopes = np.zeros((len(cases), len(self._effects)))
            for row, (case, share) in enumerate(zip(cases, shares, strict=True)):
                slopes[row, case.starts] += share
                slopes[row, case.works] += 1 - share
            far = np.abs(off) / np.sqrt(self._scale * variances)
            weights = np.minimum(1, _FAR / np.maximum(far, _FAR))
            self._slopes, self._weights = slopes, weights / (variances * self._scale)
            target = off + _along(slopes, self._effects)
            self._effects = self._solved(_across(slopes, self._weights * target))
            left = target - _along(slopes, self._effects)
            surprise = np.sum(weights / variances * left**2) + np.sum(
                (self._effects / np.array(self._deviations)) ** 2
            )
            self._scale = (_STEADY + float(surprise)) / (_STEADY + len(cases))
        for case, weight in zip(cases, weights, strict=True):
            case.weight = float(weight)
        self._smears = self._smeared()

    def _solved(self, right: Floats) -> Floats:
        """The covariance of the effects times this: conjugate gradients
        (Hestenes and Stiefel, 1952). BLAS would start threads, which wait for each other where
        something else has the cores."""
        precision = np.array(self._deviations[: len(right)]) ** -2.0
        usual = precision + _across(self._slopes**2, self._weights)
        found, rest = np.zeros(len(right)), np.array(right)
        step = rest / usual
        size = first = float(np.sum(rest * step))
        for _ in range(2 * len(right)):
            if size <= 1e-12 * first:
                break
            of_cases = self._weights * _along(self._slopes, step)
            image = precision * step + _across(self._slopes, of_cases)
            length = size / float(np.sum(step * image))
            found += length * step
            rest -= length * image
            before, size = size, float(np.sum(rest * rest / usual))
            step = rest / usual + size / before * step
        return found

    def _smeared(self) -> dict[str, float]:
        """By how much tasks of each kind take longer in the mean than the effects have it, which
        are of the mean of logarithms (Duan, *Smearing estimate*, JASA 78, 1983). That they do not
        counts as much as a few tasks."""
        took: dict[str, list[float]] = defaultdict(list)
        expected: dict[str, list[float]] = defaultdict(list)
        for traits, case in self._ended.items():
            for guess, (_, mean) in case.ended.items():
                took[traits.kind].append(math.exp(mean))
                expected[traits.kind].append(self._seconds(case, guess)[0])
        more = {kind: _UNSMEARED * sum(one) / len(one) for kind, one in expected.items()}
        return {
            kind: (sum(took[kind]) + more[kind]) / (sum(one) + more[kind])
            for kind, one in expected.items()
        }


def _along(slopes: Floats, effects: Floats) -> Floats:
    """Of each case."""
    along: Floats = np.einsum("ce,e->c", slopes, effects)
    return along


def _across(slopes: Floats, cases: Floats) -> Floats:
    """Of each effect."""
    across: Floats = np.einsum("ce,c->e", slopes, cases)
    return across


def _effects(task: Task, part: int) -> Iterator[tuple[tuple[object, ...], float]]:
    """What it shares with others of its start, 0, or of its work, 1; with the deviations."""
    both, own = _OF_BOTH, (_OF_START, _OF_WORK if task.traits.model else _OF_MEASURING)[part]
    if task.is_measured or task.traits.kind not in _MEASURING:
        both, own = _OF_MEASURED if task.is_measured else _OF_OTHERS, {}
    for which, shared in (("both", both), (part, own)):
        for names, deviation in shared.items():
            values = (getattr(task.traits, name) for name in names)
            yield (which, task.is_measured, names, *values), deviation
