"""Repeats of each case within a time budget: first one of every case, then of the contenders.

Settings are decided one after the other: frameworks at equal settings compete, and repeats go to
those whose order to the fastest is not settled. A stage of the suite begins when the settings of
those before are settled, or when what is left of the budget does not reach their next look. Cases
that check another batch come last: the two leaders of each setting, once.

On one machine the budget is wall time of the call, without that in which environments are built. A
round gets no more than ends in time if estimates are too low by as much as they may be.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from core import precisions
from core.case import Case

from ..records.run import Run
from ..statistics.verdicts import FALSE_WINNERS

if TYPE_CHECKING:  # numpy is slow to import, and most plans have no budget
    from ..statistics.repeated_intervals import Order

#: Seconds around a run, for its interpreter, Snakemake and its part of the pages, until runs tell;
#: and of a page before a round.
AROUND, PAGE_SECONDS = 1.5, 3.0
#: Seconds after a round over those of a page: its page, then tables and report by several rules.
CLOSING = 4.0
#: Standard deviations by which estimates may be too low: about one round in 40 takes longer.
MARGIN = 2.0
#: Relative deviation that repeats of measured cases share, as the machine changes.
_DRIFT = 0.05
#: Relative deviations of estimates: before a run has ended, the lower limit, and for a run whose
#: case was measured before.
GUESSED, LEAST, MEASURED = 0.4, 0.08, 0.15
#: Number of ended runs that count as much as the estimate.
WEIGHT = 2.0


@dataclass
class MeasuredCase:
    """Case with its repeats so far and what further ones take.

    ``seconds``: expected of a further repeat, with what a first one brings along; ``runs``: repeats
    so far; ``figures``: of the successful ones, in order; ``is_check``: it checks another batch and
    is measured once.
    """

    case: Case
    stage: int
    seconds: float
    checks: float
    runs: Sequence[Run] = ()
    is_check: bool = False
    figures: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        self.runs = sorted(self.runs, key=lambda run: run.repeat)
        self.figures = [run.figure for run in self.runs if run.figure is not None]

    @property
    def repeats(self) -> int:
        return len(self.runs)

    @property
    def may_go_on(self) -> bool:
        """Return whether further repeats are wanted: all so far were successful."""
        return bool(self.runs) and len(self.figures) == len(self.runs) and not self.is_check

    def seconds_to(self, repeats: int) -> float:
        """Return the seconds until the case has so many repeats."""
        checks = self.checks if not self.runs else 0.0
        return checks + self.seconds * max(0, repeats - self.repeats)


class Costs(NamedTuple):
    """Expected seconds of all cases, and those left of the time budget.

    ``stages``: stage of each case; ``seconds``: expected of a repeat of each case, before any was
    measured; ``checks``: of what a first repeat brings along; ``left``: of the budget, without what
    closing takes; ``around``: around a run; ``larger``: cases that check another batch, with the
    case that they check.
    """

    stages: Mapping[Case, int]
    seconds: Mapping[Case, float]
    checks: Mapping[Case, float]
    left: float
    around: float = 0.0
    larger: Mapping[Case, Case] = MappingProxyType({})


class Spent(NamedTuple):
    """Seconds of the time budget that a call has spent.

    ``around``, ``page``: seconds around a run, and of a page before a round; None before any.
    """

    seconds: float = 0.0
    around: float | None = None
    page: float | None = None


NOTHING_SPENT = Spent()


def wanted(runs: Mapping[Case, Sequence[Run]], costs: Costs, at_most: int) -> dict[Case, int]:
    """Return the repeats that each case should have after the next round.

    ``runs``: repeats of each case so far. ``at_most``: most repeats of a case.
    """
    expected, correction = _corrected(runs, costs.seconds)
    known = [
        MeasuredCase(
            case, stage, expected[case] + costs.around, costs.checks[case] * correction,
            runs.get(case, ()), case in costs.larger,
        )
        for case, stage in costs.stages.items()
    ]  # fmt: skip
    leaders = _leaders(known)
    known = [some for some in known if costs.larger.get(some.case) in {None, *leaders}]
    found = _round_in_time(known, costs, at_most)
    return {case: max(len(runs.get(case, ())), found.get(case, 0)) for case in costs.stages}


def _leaders(known: Sequence[MeasuredCase]) -> set[Case]:
    """Return the two fastest cases of each setting whose cases all have a run."""
    results: set[Case] = set()
    for some in _by_setting(known):
        fastest = sorted(_entrants(some), key=lambda case: -statistics.median(case.figures))
        if len(fastest) > 1 and all(case.runs for case in some):
            results |= {case.case for case in fastest[:2]}
    return results


def _by_setting(cases: Iterable[MeasuredCase]) -> list[list[MeasuredCase]]:
    settings: dict[Case, list[MeasuredCase]] = defaultdict(list)
    for case in cases:
        settings[case.case.setting].append(case)
    return [*settings.values()]


def _round_in_time(known: Sequence[MeasuredCase], costs: Costs, at_most: int) -> dict[Case, int]:
    """Return the part of the next round that ends in time; {} if nothing does.

    Where the time does not suffice for any run of a round, others follow: without the cases that
    have no run yet, or without the settings of these repeats.
    """
    going_on = list(known)
    while True:
        wanted = _next_round(_by_setting(going_on), costs.left, at_most)
        asked = [case for case in going_on if wanted.get(case.case, 0) > case.repeats]
        result = _fitting(wanted, known, costs)
        if result or not asked:
            return result
        new = {case.case for case in asked if not case.runs}
        given_up = {case.case.setting for case in asked if case.runs}
        going_on = [
            case for case in going_on if case.case not in new and case.case.setting not in given_up
        ]


def least(costs: Costs) -> float:
    """Return the seconds that must be left for a first repeat of the shortest case."""
    return min(
        next(_at_most([MeasuredCase(case, stage, seconds, costs.checks[case])], 0))
        for case, stage in costs.stages.items()
        for seconds in [costs.seconds[case] + costs.around]
    )


def _fitting(
    wanted: Mapping[Case, int], known: Sequence[MeasuredCase], costs: Costs
) -> dict[Case, int]:
    """Return the part of a round that ends in time even if the estimates are too low.

    Repeats are taken in turn, the shortest first, up to the first that does not fit. Where first
    ones probably all fit, the longest come first, because the shortest still fit at the end.
    """
    measured = sum(bool(measured_case.runs) for measured_case in known)
    further = sorted(
        (
            (repeat, measured_case)
            for measured_case in known
            for repeat in range(measured_case.repeats + 1, wanted.get(measured_case.case, 0) + 1)
        ),
        key=lambda some: (some[0], some[1].seconds_to(1)),
    )
    if sum(case.seconds_to(1) for _, case in further if not case.runs) <= costs.left:
        further.sort(key=lambda some: (some[0], -some[1].seconds_to(1)))
    results: dict[Case, int] = {}
    ends = _at_most([case for _, case in further], measured)
    for (repeat, case), seconds in zip(further, ends, strict=True):
        if seconds > costs.left:
            break
        results[case.case] = repeat
    return results


def _at_most(repeats: Sequence[MeasuredCase], measured: int) -> Iterator[float]:
    """Yield the seconds that the repeats up to each one take at most, but for rare cases.

    ``measured``: number of cases whose runs corrected the estimates. What corrects them is shared
    by all cases without a run; each also has a deviation of its own.
    """
    shared = GUESSED / math.sqrt(1 + measured / WEIGHT) + LEAST
    most, squares, begun = 0.0, 0.0, set()
    for repeat in repeats:
        is_first = not repeat.runs and repeat.case not in begun
        begun.add(repeat.case)
        seconds = repeat.seconds + repeat.checks * is_first
        most += seconds * math.exp(MARGIN * (_DRIFT if repeat.runs else shared))
        squares += (seconds * (MEASURED if repeat.runs else GUESSED)) ** 2
        yield most + MARGIN * math.sqrt(squares)


class Answer(NamedTuple):
    """First figures of a setting, or its settled order. ``seconds``: expected until then, in the
    budgets of one call after the other; ``case``: one of the setting."""

    seconds: float
    case: Case
    is_settled: bool


def answers(costs: Costs, repeats: Mapping[Case, int]) -> list[Answer]:
    """Return what further calls are expected to answer, in this order.

    A stage begins with a repeat of each case; then the two fastest of each setting get the repeats
    of the first look. ``repeats``: of each case so far.
    """
    from ..statistics.repeated_intervals import FIRST_LOOK  # imports numpy

    result: list[Answer] = []
    spent = 0.0
    for stage in sorted({*costs.stages.values()}):
        settings: dict[Case, list[Case]] = defaultdict(list)
        for case, number in costs.stages.items():
            if number == stage:
                settings[case.setting].append(case)
        to_settle = []
        for cases in settings.values():
            if is_check := cases[0] in costs.larger:  # of the leaders, whoever they will be
                cases = sorted(cases, key=lambda case: costs.seconds[case])[:2]
            new = [case for case in cases if not repeats.get(case)]
            for case in new:
                spent += costs.seconds[case] + costs.around + costs.checks[case]
            most = sorted((max(1, repeats.get(case, 0)) for case in cases), reverse=True)[:2]
            missing = sum(max(0, FIRST_LOOK - count) for count in most)
            mean = statistics.mean(costs.seconds[case] + costs.around for case in cases)
            if new:
                result.append(Answer(spent, cases[0], is_check))
            if missing and not is_check and len(cases) > 1:
                to_settle.append((missing * mean, cases[0]))
        for seconds, case in sorted(to_settle, key=lambda item: item[0]):
            spent += seconds
            result.append(Answer(spent, case, True))
    return result


def leads(runs: Mapping[Case, Sequence[Run]], costs: Costs) -> tuple[int, int]:
    """Return how many leads are settled, and the number of settings with several frameworks that
    have a figure."""
    known = [MeasuredCase(case, stage, 0.0, 0.0, runs.get(case, ())) for case, stage in
             costs.stages.items() if case not in costs.larger]  # fmt: skip
    settings = [some for some in _by_setting(known) if len(_entrants(some)) > 1]
    every = len(_by_setting(known))
    return sum(not contenders(some, every) for some in settings), len(settings)


def _corrected(
    runs: Mapping[Case, Sequence[Run]], seconds: Mapping[Case, float]
) -> tuple[dict[Case, float], float]:
    """Return the expected seconds of a repeat, measured or corrected by what others took, and this
    correction."""
    took = {
        case: statistics.median(known)
        for case, some in runs.items()
        if (known := [run.wall_seconds for run in some if run.wall_seconds])
    }
    ratios = [took[case] / seconds[case] for case in took if seconds.get(case)]
    correction = statistics.median(ratios) if ratios else 1.0
    return {case: took.get(case, value * correction) for case, value in seconds.items()}, correction


def _next_round(
    settings: Sequence[Sequence[MeasuredCase]], left: float, at_most: int
) -> dict[Case, int]:
    """Return the repeats of the next round; {} if nothing is left to do, or no time for it."""
    for stage in sorted({case.stage for some in settings for case in some}):
        reached = [[case for case in some if case.stage <= stage] for some in settings]
        reached = [some for some in reached if some]
        for some in (_first_repeats(reached), _of_contenders(reached, left, at_most)):
            if some:
                return some
    open_ = [contender for some in settings for contender in contenders(some, _sharing(settings))]
    if open_:  # towards the look of a further call
        return _up_to(open_, left, at_most)
    first_look = min(at_most, _next_look([]))
    alone = [case for some in settings if len(_entrants(some)) < 2 for case in some]
    every = [case for some in settings for case in some]
    return _whole(every, left, first_look) or _up_to(alone, left, first_look)


def _first_repeats(settings: Sequence[Sequence[MeasuredCase]]) -> dict[Case, int]:
    """Return a first repeat of each case of the cheapest setting that lacks any, baselines of
    precisions first."""
    missing = [[case for case in some if not case.runs] for some in settings]

    def cost(some: Sequence[MeasuredCase]) -> tuple[bool, float]:
        has_baseline = precisions.baseline(some[0].case.precision) is not None
        return has_baseline, sum(case.seconds_to(1) for case in some)

    cheapest = min(filter(None, missing), key=cost, default=[])
    return {case.case: 1 for case in cheapest}


def _of_contenders(
    settings: Sequence[Sequence[MeasuredCase]], left: float, at_most: int
) -> dict[Case, int]:
    """Return the repeats of contenders at their next look, of the cheapest settings that fit.

    Settings that were looked at less often come first: a lead that one look did not show is small.
    As long as the order of any setting can be settled in the time that is left, only such settings
    get repeats.
    """
    from ..statistics.repeated_intervals import FIRST_LOOK

    sharing = _sharing(settings)
    open_ = [further for some in settings if (further := contenders(some, sharing))]
    for settled in (min(at_most, FIRST_LOOK), 0):
        results: dict[Case, int] = {}
        rest = left
        asked = []
        for further in open_:
            count = min(at_most, _next_look(further))
            cost = sum(case.seconds_to(max(count, settled)) for case in further)
            to_do = {case.case: count for case in further if case.repeats < count}
            asked.append((max(count, settled), cost, to_do))
        for _, cost, to_do in sorted(asked, key=lambda item: item[:2]):
            if cost <= rest:
                rest -= cost
                results |= to_do
        if results:
            return results
    return {}


def _sharing(settings: Sequence[Sequence[MeasuredCase]]) -> int:
    """Return the number of settings that share the error rate: those that get repeats."""
    return sum(not some[0].is_check for some in settings)


def _next_look(further: Sequence[MeasuredCase]) -> int:
    """Return the repeats at the next look at these cases; the first look without any."""
    from ..statistics import repeated_intervals  # imports numpy

    if not further:
        return repeated_intervals.FIRST_LOOK
    return repeated_intervals.next_look(min(measured_case.repeats for measured_case in further))


def contenders(cases: Iterable[MeasuredCase], settings: int) -> list[MeasuredCase]:
    """Return the cases of a setting that need further repeats; [] if the setting is settled.

    These are the fastest and those whose order to it is open, one case per framework.
    ``settings``: number of settings that share the error rate.
    """
    from ..statistics.repeated_intervals import Order

    entrants = _entrants(cases)
    if len(entrants) < 2:
        return []
    leader, found = _orders(entrants, settings)
    others = [
        entrant for entrant, order in zip(entrants, found, strict=True) if order is Order.OPEN
    ]
    return [entrants[leader], *others] if others else []


def _orders(entrants: Sequence[MeasuredCase], settings: int) -> tuple[int, list[Order | None]]:
    from ..statistics import repeated_intervals

    return repeated_intervals.orders(
        [entrant.figures for entrant in entrants], FALSE_WINNERS / settings
    )


def _entrants(cases: Iterable[MeasuredCase]) -> list[MeasuredCase]:
    """Return the fastest case of each framework, without those that had a repeat without a
    figure."""
    best: dict[str, MeasuredCase] = {}
    for case in cases:
        if not case.may_go_on:
            continue
        other = best.get(case.case.framework)
        if other is None or statistics.median(case.figures) > statistics.median(other.figures):
            best[case.case.framework] = case
    return list(best.values())


def _whole(cases: Iterable[MeasuredCase], left: float, at_most: int) -> dict[Case, int]:
    """Return ``at_most`` repeats of each case that has time for all of them, the cheapest first.

    One repeat more of a case that is far behind would not show that it is, and might hide it.
    """
    results: dict[Case, int] = {}
    lacking = [case for case in cases if case.may_go_on and case.repeats < at_most]
    for case in sorted(lacking, key=lambda case: case.seconds_to(at_most)):
        left -= case.seconds_to(at_most)
        if left < 0:
            break
        results[case.case] = at_most
    return results


def _up_to(cases: Iterable[MeasuredCase], left: float, at_most: int) -> dict[Case, int]:
    """Return repeats up to ``at_most``, one by one to the case that has the fewest."""
    cases = [case for case in cases if case.may_go_on and case.repeats < at_most]
    results = {case.case: case.repeats for case in cases}
    while cases:
        case = min(cases, key=lambda case: (results[case.case], case.seconds))
        left -= case.seconds
        if left < 0:
            break
        results[case.case] += 1
        cases = [case for case in cases if results[case.case] < at_most]
    return results
