"""Runs grouped into cases, with flags for figures that cannot be trusted, and data frames of cases.

These are the input of tables, checks and report."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import pandas as pd
from core import precisions
from core.case import Case

from ..cases.conditions import KEYS, OURS, Conditions, Key
from ..config import catalog
from ..config.statuses import FAILURES
from ..config.validation import RecordSource
from ..records import record_sets, verifications
from ..records.flags import SELF_COMPILED
from ..records.run import Flag, RecordsError, Run, order
from ..records.verified import EXCLUDING, VerificationFlags, can_be_verified, why_excluded
from ..statistics import descriptive, intervals, steady
from ..statistics.intervals import Interval
from .columns import COLUMNS, Row

UNCOMPILED = "none"
NOT_RECORDED = "dtype not recorded"
#: Largest width of a median's interval, as a fraction of the median, that is not flagged as noisy.
#: Without an interval the flag is not set, because the range of two repeats is wide or narrow by
#: chance.
NOISY = 0.05
#: Failures, the most informative first: the order decides between equally frequent ones.
_TELLING = (*FAILURES,)


@dataclass(frozen=True)
class CaseResult:
    """All repeats of one case.

    ``values``: throughputs of the successful repeats. ``throughput``: their median; ``interval``:
    its 95 % interval; None if unavailable. ``remarks``: why it has its flags.
    ``excluded``: why the figure takes part in no comparison, "" if it does. ``verifiable``: whether
    it is unverified, but can still be verified."""

    key: Key
    runs: tuple[Run, ...]
    status: str
    reason: str
    values: tuple[float, ...]
    throughput: float | None
    interval: Interval | None
    flags: frozenset[str]
    remarks: tuple[str, ...]
    excluded: str = ""
    verifiable: bool = False

    @property
    def compared(self) -> float | None:
        """The figure that comparisons use; None if there is none or it is excluded."""
        return None if self.excluded else self.throughput

    @property
    def standing(self) -> str:
        """The status, or the flag for which the figure is excluded."""
        names = (name for name in EXCLUDING.values() if name in self.flags)
        return next(names, self.status) if self.excluded else self.status

    @property
    def why_not_compared(self) -> str:
        """Status and reason of a case that takes part in no comparison."""
        return f"{self.standing}: {self.excluded or self.reason}"

    @property
    def case(self) -> Case:
        return self.key.case

    @property
    def conditions(self) -> Conditions:
        return self.key.conditions

    @property
    def unit(self) -> str:
        return self.key.unit

    @property
    def better(self) -> str:
        """Direction of the metric: higher or lower."""
        named = (metric for metric in self.runs[0].metrics if metric.name == self.key.metric)
        return next(metric.better for metric in named)

    @property
    def matmul_dtypes(self) -> str:
        """Observed matmul dtypes of our runs in precisions of several dtypes; otherwise ""."""
        known = precisions.known().get(self.case.precision)
        if known is None or len(known.dtypes) == 1 or not (self._is_ours and self.ok):
            return ""
        observed = dict.fromkeys(dtype for run in self.ok for dtype in run.matmul_dtypes)
        return ", ".join(observed) or NOT_RECORDED

    @property
    def uncompiled(self) -> str:
        """Return how the framework runs without a compiler, such as eager, or that the model
        compiles itself; "" for cases with a compiler or from other projects."""
        if any(flag.name == SELF_COMPILED for run in self.ok for flag in run.flags):
            return "compiled by the model"
        ours = self._is_ours and self.case.compiler == UNCOMPILED
        return (
            str(catalog.framework_declaration(self.case.framework).get("none_is", ""))
            if ours
            else ""
        )

    @property
    def official_code(self) -> list[str]:
        """Return by how much the framework's official code was faster than ours on a CPU in fp32,
        in words; [] where it was not."""
        case = self.case
        if not self._is_ours or case.variant or case.precision != precisions.default():
            return []
        measured = {"model": case.model, "mode": case.mode, "compiler": case.compiler}
        return [
            f"official code {entry['percent']} % faster"
            for entry in catalog.framework_declaration(case.framework).get("official_faster", ())
            if self.conditions.accelerator == "cpu" and {**entry, **measured} == entry
        ]

    @property
    def variation(self) -> list[str]:
        """Compiler and variant, where they are not the default."""
        compiler, variant = self.case.compiler, self.case.variant
        return [*[compiler] * (compiler not in ("", UNCOMPILED)), *[variant] * bool(variant)]

    @property
    def _is_ours(self) -> bool:
        """Return whether this project's adapters ran the case.

        Files exported by this project count as well, even without records."""
        return self.case.source == OURS

    @cached_property
    def ok(self) -> tuple[Run, ...]:
        """Successful repeats."""
        return tuple(run for run in self.runs if run.status == "ok")


#: Judged cases by key; runs are grouped and judged once.
CaseResults = Mapping[Key, CaseResult]


def fraction_of_best(value: float, best: float, better: str) -> float:
    """Return a figure over the best one, or the inverse if less is better; 0 if undefined."""
    over, under = (value, best) if better == "higher" else (best, value)
    return over / under if under else 0.0


def over_runs(
    figure: Callable[[Run], Any],
    reduce: Callable[[Sequence[Any]], Any] = descriptive.median,
) -> Callable[[CaseResult], Any]:
    """Return a function of a case that reduces a figure of its successful repeats.

    Repeats without it are left out; the function returns None if all are."""

    def value(case: CaseResult) -> Any:
        found = [value for run in case.ok if (value := figure(run)) is not None]
        return reduce(found) if found else None

    return value


def flags_of(*cases: CaseResult | None) -> str:
    """Return the flags of the given cases as text, without duplicates."""
    return " ".join(sorted(frozenset().union(*(case.flags for case in cases if case))))


# ---- grouping of runs into cases -----------------------------------------------------------------


def group(runs: Sequence[Run], verified: VerificationFlags | None) -> CaseResults:
    """Return the cases of ``runs``, in the order of their runs.

    ``verified``: flags of unverified runs; None to skip these flags."""
    repeats: dict[Key, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=order):
        for key in run.keys:
            repeats[key].append(run)
    return {key: _judged(key, tuple(some), verified) for key, some in repeats.items()}


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
        flags = [(run.repeat, flag) for run in ok for flag in run.flags]
        # Step times are judged here and not when records are read, because plans do not need it.
        flags += [
            (run.repeat, Flag("unsteady", why))
            for run in ok
            if (why := steady.unsteady(run.step_seconds))
        ]
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


def _explained(flags: Sequence[tuple[int, Flag]]) -> Iterator[str]:
    """Yield the first explanation of each flag, with the number of other repeats that have it.

    ``flags``: pairs of repeat and flag."""
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


# ---- data frames --------------------------------------------------------------------------------

#: Figures of a case that tables share, by column.
FIGURES: Mapping[str, Callable[[CaseResult], Any]] = {
    "median": attrgetter("throughput"),
    "unit": attrgetter("unit"),
    "minimum": lambda case: min(case.values, default=None),
    "maximum": lambda case: max(case.values, default=None),
    "median_ci_low": lambda case: case.interval and case.interval[0],
    "median_ci_high": lambda case: case.interval and case.interval[1],
    "spread": lambda case: descriptive.spread(case.values),
    "better": attrgetter("better"),
    "repeats": lambda case: len(case.values) or len(case.runs),
    "status": attrgetter("status"),
    "reason": attrgetter("reason"),
    "remarks": lambda case: "; ".join(case.remarks),
    "flags": flags_of,
}
#: Figures under the names that the tables of steps give them, and further columns.
_OF_STEPS: Mapping[str, Callable[[CaseResult], Any]] = {
    "throughput_median": FIGURES["median"],
    "throughput_min": FIGURES["minimum"],
    "throughput_max": FIGURES["maximum"],
    "throughput_ci_low": FIGURES["median_ci_low"],
    "throughput_ci_high": FIGURES["median_ci_high"],
    "throughput_spread": FIGURES["spread"],
    **{name: FIGURES[name] for name in ("unit", "repeats", "status", "reason", "remarks", "flags")},
    "matmul_dtypes": attrgetter("matmul_dtypes"),
    "uncompiled": attrgetter("uncompiled"),
    "peak_device_memory_bytes": over_runs(lambda run: run.peak_device_memory or None, max),
    "peak_host_memory_bytes": over_runs(lambda run: run.peak_host_memory or None, max),
    "devices": attrgetter("case.devices"),
}


def case_frame(results: Iterable[CaseResult]) -> pd.DataFrame:
    """Return a row per case, with a column per axis, condition and figure of steps."""
    listed = list(results)
    rows = [result.key.row for result in listed]
    values = {name: [row[name] for row in rows] for name in KEYS}
    values |= {name: list(map(value, listed)) for name, value in _OF_STEPS.items()}
    return pd.DataFrame(
        {name: pd.Series(some, dtype=COLUMNS[name].type) for name, some in values.items()}
    )


def with_cells(cases: pd.DataFrame, cells: Iterable[Row | None]) -> pd.DataFrame:
    """Return ``cases`` with further columns. ``cells``: their values by name; None for no row."""
    made = list(cells)
    chosen = cases.loc[[row is not None for row in made]]
    rows = [row for row in made if row is not None]
    return chosen.assign(**pd.DataFrame(rows, index=chosen.index, dtype=object))
