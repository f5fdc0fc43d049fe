"""Table of a plan's cases: a row per framework and workload."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from core.case import Case
from core.text import duration

from .job import Job

#: Most values of an axis that are listed; longer lists show first, last and their number.
_MOST = 4
_HEADER = ["framework", "workload", "settings", "cases", "runs", "s/run", "state", "time to go"]


def of_runs(
    runs: Sequence[Job], cases: Iterable[Case], named: Mapping[str, frozenset[str]]
) -> list[list[str]]:
    """Return header and rows of a table of runs, in the order of the ``cases``.

    ``named``: the parameters that the suite sets, by benchmark.
    """
    grouped: dict[tuple[str, str], list[Job]] = defaultdict(list)
    order = {case: number for number, case in enumerate(cases)}
    for run in sorted(runs, key=lambda run: order[run.case]):
        grouped[run.case.framework, run.case.model].append(run)
    return [_HEADER, *(_row(*names, group, named) for names, group in grouped.items())]


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines with columns padded to their widest cell; empty columns are left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _row(
    framework: str, model: str, runs: Sequence[Job], named: Mapping[str, frozenset[str]]
) -> list[str]:
    cases = list(dict.fromkeys(run.case for run in runs))
    seconds = sorted(run.seconds for run in runs)
    low, high = f"{seconds[0]:.0f}", f"{seconds[-1]:.0f}"
    statuses = Counter(run.status or "to do" for run in runs)
    to_go = sum(run.seconds for run in runs if not run.status)
    return [
        framework,
        model,
        axes(cases, named),
        str(len(cases)),
        str(len(runs)),
        low if low == high else f"{low} to {high}",
        ", ".join(f"{count} {status}" for status, count in statuses.items()),
        duration(to_go) if to_go else "",
    ]


def axes(cases: Sequence[Case], named: Mapping[str, frozenset[str]]) -> str:
    """Return the values of cases on each axis but framework and model: ``train, inference;
    fp32``."""
    columns: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        default = dict(case.parameters).keys() - named.get(case.mode, frozenset())
        for name, text in case.words().items():
            if name not in default:
                columns[name].append(text)
    values = [list(dict.fromkeys(filter(None, column))) for column in columns.values()]
    return "; ".join(_listed(sorted(value, key=_number)) for value in values if value)


def _number(value: str) -> int:
    """Return the number at the end of a text, by which it is sorted; 0 without one."""
    digits = value.rpartition(" ")[2]
    return int(digits) if digits.isdecimal() else 0


def _listed(values: Sequence[str]) -> str:
    """Return values as a list like ``batch 2, 4``; a common first word appears once."""
    first, _, _ = values[0].partition(" ")
    if len(values) > 1 and all(value.startswith(f"{first} ") for value in values):
        return f"{first} {_listed([value.removeprefix(f'{first} ') for value in values])}"
    if len(values) > _MOST:
        return f"{values[0]} .. {values[-1]} ({len(values)})"
    return ", ".join(values)
