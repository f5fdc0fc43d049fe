"""Number of pairs that a performance gate is expected to take on this machine, and their time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.text import duration

from ..config.repeats import FIRST_LOOK
from ..machine.identities import is_here
from ..records import record_sets
from ..records.run import Run
from ..statistics.descriptive import median
from . import pairing
from .planning import Plan, seconds_for

#: Probability that all cases pass with the named number of pairs, if nothing has changed.
_CHANCE = 0.9
#: Fewest values of a case that tell how much they scatter.
_FEWEST = 4


def lines(plan: Plan) -> list[str]:
    """Return the expected pairs and time of a gate; [] for another suite."""
    repeats = plan.settings.suite.repeats
    if repeats.margin is None:
        return []
    head = f"Gate with a margin of {repeats.margin:.1%}: "
    if repeats.at_most < FIRST_LOOK:
        return [f"{head}{repeats.at_most} pairs decide nothing, it takes {FIRST_LOOK} or more"]
    of_round = _seconds_of_round(plan)
    most = f"At most {repeats.at_most} pairs, {duration(repeats.at_most * of_round)}"
    scatters, basis = _scatters(plan)
    if not scatters:
        first = f"the first {repeats.at_least} pairs tell how many it takes on this machine. "
        return [head + first + most]
    pairs, all_pass = _unchanged(scatters, repeats.margin, repeats.at_most)
    return [
        f"{head}pairs scatter by {median(scatters):.1%} on this machine (from {basis}). If nothing "
        f"has changed, a case takes {pairs:.0f} pairs on average, in all "
        f"{duration(pairs * of_round)}; "
        + (f"{all_pass} pairs decide all cases" if all_pass else "no number decides all cases")
        + f" in 9 of 10 calls. {most}"
    ]


def _seconds_of_round(plan: Plan) -> float:
    """Return the seconds of one pair of every case, by the median of its runs so far or, without
    any, by the plan."""
    made = pairing.by_folder(_here(plan, plan.settings.results))
    first = {run.case: run for run in plan.runs}
    for case, run in first.items():
        if took := [run.wall_seconds for run in made[plan.folders[case]] if run.wall_seconds]:
            first[case] = run._replace(seconds=median(took))
    return seconds_for(plan, first.values())


def _unchanged(scatters: Sequence[float], margin: float, at_most: int) -> tuple[float, int | None]:
    """Return the mean number of pairs of a case if nothing has changed, and the number that decides
    all cases; None for more than the last look has."""
    from ..statistics import sequential  # here: most plans need no numpy

    looks = [*zip(sequential.LOOKS, sequential.unchanged(scatters, margin), strict=True)]
    pairs = [mean for look, (_, mean) in looks if look <= at_most]
    all_pass = (look for look, (chance, _) in looks if chance >= _CHANCE)
    return pairs[-1] if pairs else at_most, next(all_pass, None)


def _scatters(plan: Plan) -> tuple[list[float], str]:
    """Return how much the pairs of each case scatter on this machine, and what shows that.

    The first pairs of a case tell little: its scatter is averaged with the median of all cases.
    Without pairs of this gate it is the median over repeats of the same benchmarks, in these
    results or in the folder that holds them. [] without any.
    """
    from ..statistics import sequential  # here: most plans need no numpy

    suite, results = plan.settings.suite, plan.settings.results
    runs = [*_here(plan, results)]
    ratios = pairing.ratios_of_cases(plan.folders, suite, pairing.by_folder(runs))
    pairs = [entry for some in ratios.values() for entry in some if len(entry) >= _FEWEST]
    if pairs:
        of_pairs = [sequential.scatter_of_pairs(pair) for pair in pairs]
        typical = median(of_pairs)
        return [(pair * typical) ** 0.5 for pair in of_pairs], f"{len(pairs)} cases in pairs"
    modes = {case.mode for case in plan.folders}
    runs = [run for run in (*runs, *_here(plan, results.parent)) if run.case.mode in modes]
    found = [sequential.scatter_of_sets(repeat, repeat) for repeat in _repeats(runs)]
    middle = [median(found)] if found else []
    return middle * len(ratios), f"repeats of {len(found)} cases"


def _here(plan: Plan, results: Path) -> Iterator[Run]:
    """Yield the ok runs of this machine in a results folder."""
    try:
        record_set = record_sets.load_results(results, writes=False)
    except record_sets.RecordsError:
        return
    for run in record_set.runs if record_set else ():
        if run.status == "ok" and is_here(run.machine, plan.here):
            yield run


def _repeats(runs: Sequence[Run]) -> Iterator[list[float]]:
    """Yield the figures of each case with enough repeats."""
    found = defaultdict(list)
    for run in runs:
        if run.figure is not None and run.figure > 0:
            found[run.key].append(run.figure)
    yield from (values for values in found.values() if len(values) >= _FEWEST)
