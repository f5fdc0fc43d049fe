"""Grouping of runs into cases, with flags for figures that cannot be trusted."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..cases.conditions import Key
from ..config import catalog
from ..config.statuses import FAILURES
from ..config.validation import RecordSource
from ..files.json_files import Problem
from ..records import device_peaks, record_sets, verifications
from ..records.record_sets import RecordSet
from ..records.run import Flag, RecordsError, Run, order
from ..records.sidecars import load_expected
from ..records.verified import VerificationFlags, can_be_verified, why_excluded
from ..statistics import descriptive, intervals, steady
from .results import CaseResult, CaseResults
from .table import Inputs

#: Largest width of a median's interval, as a fraction of the median, that is not flagged as noisy.
#: Without an interval the flag is not set, because the range of two repeats is wide or narrow by
#: chance.
NOISY = 0.05

# Failures, the most telling first, to choose among equally frequent ones.
_TELLING = (*FAILURES,)


def group(runs: Sequence[Run], verified: VerificationFlags | None) -> CaseResults:
    """Return the cases of ``runs``, in the order of their runs.

    ``verified``: flags of unverified runs; None to skip these flags."""
    repeats: dict[Key, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=order):
        for key in run.keys:
            repeats[key].append(run)
    return {key: _judged(key, tuple(some), verified) for key, some in repeats.items()}


def inputs_of(record_set: RecordSet, source: Path) -> tuple[Inputs, Sequence[Problem]]:
    """Group and judge the records of ``source`` for tables.

    Returns them with the files beside the records, and problems with these files."""
    folder = source.parent
    verification_results, of_verifications = verifications.load(verifications.folder_for(source))
    reached, of_peaks = device_peaks.load(folder / device_peaks.KIND)
    asked, of_asked = load_expected(folder)
    models = catalog.project_catalog().models
    cases = group(record_set.runs, VerificationFlags(verification_results, models))
    inputs = Inputs(
        cases={key: result for key, result in cases.items() if key.case.is_step},
        verification_results=verification_results,
        peaks=device_peaks.PeakFlopsLookup(reached),
        searches=record_set.searches,
        models=models,
        others={key: result for key, result in cases.items() if not key.case.is_step},
        expected=[case for case in asked if not case.left_out],
        left_out=[case for case in asked if case.left_out],
    )
    return inputs, [*of_verifications, *of_peaks, *of_asked]


def grouped(source: RecordSource) -> CaseResults:
    """Return the judged cases of a set of records.

    Prints ignored records to stderr. Raises RecordsError for a set without runs."""
    record_set = record_sets.load(source.path)
    verification_results, problems = verifications.load(verifications.folder_for(source.path))
    for problem in (*record_set.problems, *problems):
        print(f"ignored: {source}: {problem.origin}: {problem.message}", file=sys.stderr)
    if not record_set.runs:
        raise RecordsError(f"{source}: holds no record of a run")
    runs = (
        record_sets.runs_of_variant(record_set, source.variant)
        if source.variant
        else record_set.runs
    )
    models = catalog.project_catalog().models
    return group(runs, VerificationFlags(verification_results, models))


def _judged(key: Key, runs: tuple[Run, ...], verified: VerificationFlags | None) -> CaseResult:
    ok = [run for run in runs if run.status == "ok"]
    figures = (run.value(key.metric, key.point) for run in ok)
    values = tuple(figure for figure in figures if figure is not None)
    failures = [run for run in runs if run.status != "ok"]
    if values:
        middle = descriptive.median(values)
        reason = ""
        if failures:
            reason = f"{_failure_text(failures, len(runs))}; median of the other {len(values)}"
        interval = intervals.median_interval(values)
        flags = [(run.repeat, flag) for run in ok for flag in flags_of_run(run)]
        unverified = [(run.repeat, verified.flag(run)) for run in ok] if verified else []
        flags += [(repeat, flag) for repeat, flag in unverified if flag]
        found = {flag.name for _, flag in flags}
        if interval and interval[1] - interval[0] > NOISY * abs(middle):
            found.add("noisy")
        return CaseResult(
            key, runs, "ok", reason, values, middle, interval, frozenset(found),
            tuple(_explained(flags)), why_excluded(flag for _, flag in flags),
            any(can_be_verified(flag) for _, flag in flags),
        )  # fmt: skip
    counted = Counter(run.status for run in failures)
    status = max(counted, key=lambda name: (counted[name], -_TELLING.index(name)))
    same = [run for run in failures if run.status == status]
    reason = _commonest(same) if len(counted) == 1 else _failure_text(failures, len(runs))
    return CaseResult(key, runs, status, reason, (), None, None, frozenset(), ())


def flags_of_run(run: Run) -> tuple[Flag, ...]:
    """Return the flags of a run's record and of its step times.

    Step times are judged here and not when records are read, because plans do not need it."""
    why = steady.unsteady(run.step_seconds)
    return (*run.flags, Flag("unsteady", why)) if why else run.flags


def _explained(flags: Sequence[tuple[int, Flag]]) -> Iterator[str]:
    """Yield, per flag with an explanation, the first one and the number of other repeats.

    ``flags``: with the numbers of their repeats."""
    kinds: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for repeat, flag in flags:
        if flag.why:
            kinds[flag.name].append((repeat, flag.why))
    for name, entry in sorted(kinds.items()):
        others = {repeat for repeat, _ in entry} - {entry[0][0]}
        more = f" (and in {len(others)} more)" if others else ""
        yield f"{name}: in repeat {entry[0][0]} {entry[0][1]}{more}"


def _failure_text(failures: Sequence[Run], total: int) -> str:
    """Return failures as text: "2 of 7 repeats out of memory: ..; 1 failed: .."."""
    parts: list[str] = []
    for status in _TELLING:
        same = [run for run in failures if run.status == status]
        if same:
            text = "" if parts else f" of {total} repeats"
            parts.append(f"{len(same)}{text} {FAILURES[status].words}: {_commonest(same)}")
    return "; ".join(parts)


def _commonest(runs: Sequence[Run]) -> str:
    counted = Counter(run.reason for run in runs)
    return max(sorted(counted), key=lambda reason: counted[reason])
