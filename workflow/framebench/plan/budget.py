"""Repeats of each case within a time budget: one for every case first, then more for contenders.

Settings are decided one after the other: frameworks at equal settings compete, and repeats go to
frameworks whose order to the fastest is not settled. A stage of the suite begins when the settings
of earlier stages are settled, or when the remaining time is too short for their next look. Cases
that check another batch come last: each setting's two leaders, once each.

On one machine the budget is the call's wall time, without building environments. A round gets no
more runs than end in time even if the estimates are too low.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core import precisions
from core.case import Case

from ..records.run import Run
from ..statistics.verdicts import FALSE_WINNERS

# numpy is slow to import, and most plans have no budget: ..statistics.repeated_intervals is
# imported where it is used

#: Standard deviations by which estimates may be too low: about one round in 40 takes longer.
MARGIN = 2.0
#: Relative deviation that repeats of measured cases share, as the machine changes.
_DRIFT = 0.05
#: Relative deviations of estimates: of a case without runs, the least that all such cases share,
#: and of a case with runs.
GUESSED, LEAST, MEASURED = 0.4, 0.08, 0.15
#: Number of measured cases that count as much as the first estimate.
WEIGHT = 2.0


@dataclass
class MeasuredCase:
    """Case with its repeats so far, and the expected seconds of further ones.

    ``stage``: stage of the suite; ``seconds``: expected for a further repeat, including the time
    around it; ``checks``: seconds of checks that come with the first repeat; ``runs``: repeats so
    far; ``checked``: the case that this one repeats once with another batch, None for other cases;
    ``figures``: figures of the successful repeats, in order.
    """

    case: Case
    stage: int
    seconds: float
    checks: float
    runs: Sequence[Run] = ()
    checked: Case | None = None
    figures: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        self.runs = sorted(self.runs, key=lambda run: run.repeat)
        self.figures = [run.figure for run in self.runs if run.figure is not None]

    @property
    def repeats(self) -> int:
        return len(self.runs)

    @property
    def may_go_on(self) -> bool:
        """Return whether further repeats are useful: all so far were successful."""
        return bool(self.runs) and len(self.figures) == len(self.runs) and not self.checked

    def seconds_to(self, repeats: int) -> float:
        """Return the seconds until the case has this number of repeats."""
        checks = self.checks if not self.runs else 0.0
        return checks + self.seconds * max(0, repeats - self.repeats)


def wanted(cases: Sequence[MeasuredCase], left: float, at_most: int) -> dict[Case, int]:
    """Return the repeats that each case should have after the next round.

    ``left``: seconds of the budget. ``at_most``: most repeats of a case.
    """
    asked = {None, *_leaders(cases)}
    found = _round_in_time([some for some in cases if some.checked in asked], left, at_most)
    return {some.case: max(some.repeats, found.get(some.case, 0)) for some in cases}


def _leaders(cases: Sequence[MeasuredCase]) -> Iterator[Case]:
    """Yield the two fastest cases of each setting whose cases all have a run."""
    for some in _by_setting(cases):
        fastest = sorted(_entrants(some), key=lambda case: -statistics.median(case.figures))
        if len(fastest) > 1 and all(case.runs for case in some):
            yield from (case.case for case in fastest[:2])


def _by_setting(cases: Iterable[MeasuredCase]) -> list[list[MeasuredCase]]:
    settings: dict[Case, list[MeasuredCase]] = defaultdict(list)
    for case in cases:
        settings[case.case.setting].append(case)
    return [*settings.values()]


def _round_in_time(cases: Sequence[MeasuredCase], left: float, at_most: int) -> dict[Case, int]:
    """Return the part of the next round that ends in time; {} if nothing does.

    If there is no time for any run of a round, another is tried. It leaves out cases of the round
    that have no run yet, and all settings in which the round repeats cases.
    """
    going_on = list(cases)
    while True:
        wanted = _next_round(_by_setting(going_on), left, at_most)
        asked = [case for case in going_on if wanted.get(case.case, 0) > case.repeats]
        result = _fitting(wanted, cases, left)
        if result or not asked:
            return result
        new = {case.case for case in asked if not case.runs}
        given_up = {case.case.setting for case in asked if case.runs}
        going_on = [
            case for case in going_on if case.case not in new and case.case.setting not in given_up
        ]


def _fitting(
    wanted: Mapping[Case, int], cases: Sequence[MeasuredCase], left: float
) -> dict[Case, int]:
    """Return the part of a round that ends in time even if the estimates are too low.

    Repeats are taken in turn, the shortest first, up to the first that does not fit. If all first
    repeats fit even if estimates are too low by one standard deviation, the longest come first,
    unless that one does not fit: the shortest still fit at the end.
    """
    further = sorted(
        (
            (repeat, case)
            for case in cases
            for repeat in range(case.repeats + 1, wanted.get(case.case, 0) + 1)
        ),
        key=lambda some: (some[0], some[1].seconds_to(1)),
    )
    orders = [further]
    measured = sum(bool(case.runs) for case in cases)
    first = sum(case.seconds_to(1) for _, case in further if not case.runs)
    if first * math.exp(_shared_deviation(measured)) <= left:
        orders.insert(0, sorted(further, key=lambda some: (some[0], -some[1].seconds_to(1))))
    for order in orders:
        ends = _at_most([case for _, case in order], measured)
        fitting = (item for item, seconds in zip(order, ends, strict=True) if seconds <= left)
        if results := {case.case: repeat for repeat, case in fitting}:
            return results
    return {}


def _at_most(repeats: Sequence[MeasuredCase], measured: int) -> Iterator[float]:
    """Yield, for each repeat, a bound of the seconds of all repeats up to it (rarely exceeded).

    ``measured``: number of cases whose runs corrected the estimates.
    """
    shared = _shared_deviation(measured)
    most, squares, begun = 0.0, 0.0, set()
    for repeat in repeats:
        is_first = not repeat.runs and repeat.case not in begun
        begun.add(repeat.case)
        seconds = repeat.seconds + repeat.checks * is_first
        most += seconds * math.exp(MARGIN * (_DRIFT if repeat.runs else shared))
        squares += (seconds * (MEASURED if repeat.runs else GUESSED)) ** 2
        yield most + MARGIN * math.sqrt(squares)


def _shared_deviation(measured: int) -> float:
    """Return the relative deviation that the estimates of all cases without a run share, after runs
    of ``measured`` cases corrected them; each case also has its own."""
    return GUESSED / math.sqrt(1 + measured / WEIGHT) + LEAST


class Answer(NamedTuple):
    """First figures of a setting, or its settled order. ``seconds``: expected until then, added
    over consecutive calls' budgets; ``case``: a case of the setting."""

    seconds: float
    case: Case
    is_settled: bool


def answers(cases: Iterable[MeasuredCase], repeats: Mapping[Case, int]) -> list[Answer]:
    """Return the settings that further calls are expected to answer, in order.

    A stage begins with a repeat of each case; then the two fastest cases of each setting get the
    repeats of the first look. ``repeats``: repeats of each case so far.
    """
    from ..statistics.repeated_intervals import FIRST_LOOK

    result: list[Answer] = []
    spent = 0.0
    stages: dict[int, list[MeasuredCase]] = defaultdict(list)
    for case in cases:
        stages[case.stage].append(case)
    for _, in_stage in sorted(stages.items()):
        to_settle = []
        for some in sorted(_by_setting(in_stage), key=_has_baseline):
            if is_check := bool(some[0].checked):  # checks of the leaders, which are not known yet
                some = sorted(some, key=lambda case: case.seconds)[:2]
            new = [case for case in some if not repeats.get(case.case)]
            spent += sum(case.seconds + case.checks for case in new)
            if new:
                result.append(Answer(spent, some[0].case, is_check))
            most = sorted((max(1, repeats.get(case.case, 0)) for case in some), reverse=True)[:2]
            missing = sum(max(0, FIRST_LOOK - count) for count in most)
            if missing and not is_check and len(some) > 1:
                mean = statistics.mean(case.seconds for case in some)
                to_settle.append((missing * mean, some[0].case))
        for seconds, setting in sorted(to_settle, key=lambda item: item[0]):
            spent += seconds
            result.append(Answer(spent, setting, True))
    return result


def leads(cases: Iterable[MeasuredCase]) -> tuple[int, int]:
    """Return how many leads are settled, and the number of settings in which several frameworks
    have a figure."""
    every = _by_setting(case for case in cases if not case.checked)
    settings = [some for some in every if len(_entrants(some)) > 1]
    return sum(not contenders(some, len(every)) for some in settings), len(settings)


def _next_round(
    settings: Sequence[Sequence[MeasuredCase]], left: float, at_most: int
) -> dict[Case, int]:
    """Return the repeats of the next round; {} if nothing is left to do, or no time for it."""
    for stage in sorted({case.stage for some in settings for case in some}):
        reached = [[case for case in some if case.stage <= stage] for some in settings]
        reached = [some for some in reached if some]
        for some in (_first_repeats(reached), _contender_repeats(reached, left, at_most)):
            if some:
                return some
    open_ = [contender for some in settings for contender in contenders(some, _sharing(settings))]
    if open_:  # repeats towards a later call's look
        return _up_to(open_, left, at_most)
    return _whole(itertools.chain(*settings), left, min(at_most, _next_look([])))


def _first_repeats(settings: Sequence[Sequence[MeasuredCase]]) -> dict[Case, int]:
    """Return a first repeat of each case without runs in one setting: the first of the suite that
    has such cases, settings in a baseline precision first."""
    missing = ([case for case in some if not case.runs] for some in settings)
    return {case.case: 1 for case in min(filter(None, missing), key=_has_baseline, default=[])}


def _has_baseline(setting: Sequence[MeasuredCase]) -> bool:
    return precisions.baseline(setting[0].case.precision) is not None


def _contender_repeats(
    settings: Sequence[Sequence[MeasuredCase]], left: float, at_most: int
) -> dict[Case, int]:
    """Return the repeats of contenders for their next look, in the cheapest settings that fit.

    Settings with fewer looks come first, because a lead that one look did not show is small. As
    long as the order of any setting can be settled in the remaining time, only such settings get
    repeats.
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
    return sum(not some[0].checked for some in settings)


def _next_look(further: Sequence[MeasuredCase]) -> int:
    """Return the number of repeats at the next look at these cases; without cases, at the first."""
    from ..statistics import repeated_intervals

    if not further:
        return repeated_intervals.FIRST_LOOK
    return repeated_intervals.next_look(min(measured_case.repeats for measured_case in further))


def contenders(cases: Iterable[MeasuredCase], settings: int) -> list[MeasuredCase]:
    """Return the cases of a setting that need further repeats; [] if the setting is settled.

    These are the fastest case and those whose order to it is open, one per framework.
    ``settings``: number of settings that share the error rate.
    """
    from ..statistics.repeated_intervals import Order, orders

    entrants = _entrants(cases)
    if len(entrants) < 2:
        return []
    figures = [entrant.figures for entrant in entrants]
    leader, found = orders(figures, FALSE_WINNERS / settings)
    others = [
        entrant for entrant, order in zip(entrants, found, strict=True) if order is Order.OPEN
    ]
    return [entrants[leader], *others] if others else []


def _entrants(cases: Iterable[MeasuredCase]) -> list[MeasuredCase]:
    """Return the fastest case of each framework among those whose repeats all have a figure."""
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

    Cases get all of them or none: one further repeat of a case that is far behind would not show
    that it is behind, and might hide it.
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
    """Return repeats up to ``at_most``, given one by one to the case with the fewest."""
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
