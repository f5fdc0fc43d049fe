"""Runs grouped into cases, and whether the figures of their repeats can be trusted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ..cases.conditions import Key
from ..config.statuses import FAILURES
from ..records.run import Flag, Run, order
from ..records.verified import VerificationFlags
from ..statistics import descriptive, intervals, shape, steady
from .results import CaseResult, CaseResults

#: A median is noisy whose interval is wider than this part of it, from end to end. Without an
#: interval nothing is said: the range of two repeats is wide or narrow by chance.
NOISY = 0.05

# Which failure to name where several are equally frequent: the most telling first.
_TELLING = (*FAILURES,)


def group(runs: Sequence[Run], marks: VerificationFlags | None) -> CaseResults:
    """The cases of any runs in any order, in the order of their runs. ``marks``: of what has no
    proof, None where that is not asked."""
    groups: dict[Key, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=order):
        for key in run.keys:
            groups[key].append(run)
    return {key: _judged(key, tuple(some), marks) for key, some in groups.items()}


def _judged(key: Key, runs: tuple[Run, ...], marks: VerificationFlags | None) -> CaseResult:
    ok = [run for run in runs if run.status == "ok"]
    values = tuple(value for run in ok if (value := run.value(key.metric, key.point)) is not None)
    failures = [run for run in runs if run.status != "ok"]
    if values:
        reason = ""
        if failures:
            reason = f"{_told(failures, len(runs))}; median of the other {len(values)}"
        interval = intervals.median_interval(values)
        middle = descriptive.median(values)
        flags = [(run.repeat, flag) for run in ok for flag in flags_of_run(run)]
        proofs = [(run.repeat, marks.flag(run)) for run in ok] if marks else []
        flags += [(repeat, flag) for repeat, flag in proofs if flag]
        found = {flag.name for _, flag in flags} | _trust(values, middle, interval)
        remarks = (*_found(ok), *_doubted(flags), *_shaped(values, [run.repeat for run in ok]))
        # of an imported run the steps are not known
        if any(0 < len(run.step_seconds) < steady.FEWEST_STEPS for run in ok):
            found.add("untested")
        return CaseResult(
            key, runs, "ok", reason, values, middle, interval, frozenset(found), remarks
        )
    counted = Counter(run.status for run in failures)
    status = max(counted, key=lambda name: (counted[name], -_TELLING.index(name)))
    same = [run for run in failures if run.status == status]
    reason = _commonest(same) if len(counted) == 1 else _told(failures, len(runs))
    return CaseResult(key, runs, status, reason, (), None, None, frozenset(), ())


def _trust(values: Sequence[float], middle: float, interval: intervals.Interval | None) -> set[str]:
    """Marks that the repeats alone tell."""
    if interval is None:
        return {"few"}
    low, high = interval
    return {"noisy"} if high - low > NOISY * abs(middle) or shape.modes(values) else set()


def _found(runs: Sequence[Run]) -> Iterator[str]:
    if any(run.largest for run in runs):
        yield f"{runs[0].case.batch_per_device} (max): the largest batch per device that fits"


def flags_of_run(run: Run) -> tuple[Flag, ...]:
    """What its record tells against its figure, and what its step times tell. The latter are judged
    here, where tables are made, and not whenever records are read: a plan does not need it."""
    why = steady.unsteady(run.step_seconds)
    return (*run.flags, Flag("unsteady", why)) if why else run.flags


def _doubted(flags: Sequence[tuple[int, Flag]]) -> Iterator[str]:
    """The first doubt of each kind that has words, and of how many repeats there is one;
    ``flags``: with the numbers of their repeats."""
    kinds: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for repeat, flag in flags:
        if flag.why:
            kinds[flag.name].append((repeat, flag.why))
    for mark, found in sorted(kinds.items()):
        others = {repeat for repeat, _ in found} - {found[0][0]}
        more = f" (and in {len(others)} more)" if others else ""
        yield f"{mark}: in repeat {found[0][0]} {found[0][1]}{more}"


def _shaped(values: Sequence[float], repeats: Sequence[int]) -> Iterator[str]:
    """Outliers and modes; ``repeats``: the number of each value's."""
    middle = descriptive.median(values)
    for place in shape.outliers(values):
        by = f": {values[place] / middle - 1:+.1%}" if middle else ""
        yield f"repeat {repeats[place]} stands apart{by}"
    if both := shape.modes(values):
        lower, upper = (f"{len(part)} near {descriptive.median(part):.4g}" for part in both)
        yield f"two modes: {lower} and {upper}"


def _told(failures: Sequence[Run], total: int) -> str:
    """ "2 of 7 repeats out of memory: ..; 1 failed: .." """
    parts: list[str] = []
    for status in _TELLING:
        same = [run for run in failures if run.status == status]
        if same:
            of = "" if parts else f" of {total} repeats"
            parts.append(f"{len(same)}{of} {FAILURES[status].told}: {_commonest(same)}")
    return "; ".join(parts)


def _commonest(runs: Sequence[Run]) -> str:
    counted = Counter(run.reason for run in runs)
    return max(sorted(counted), key=lambda reason: counted[reason])
