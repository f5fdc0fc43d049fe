"""The cases of a plan for people: a line for each framework and workload, and a reason once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ..cases.fitting import LeftOut
from ..cases.matrix import Case
from ..config.inputs import SYNTHETIC
from ..config.parallelism import DATA
from .planning import PlannedRun, duration

#: So many values of an axis are spelled out; of more the first, the last and their number.
_MOST = 4
_HEADER = ["framework", "workload", "what of it", "cases", "runs", "s/run", "state", "time to go"]


def of_runs(
    runs: Sequence[PlannedRun], cases: Iterable[Case], named: Mapping[str, frozenset[str]]
) -> list[list[str]]:
    """Header and rows of a table, in the order of the ``cases``. ``named``: the parameters of a
    kind that are no default's."""
    grouped: dict[tuple[str, str], list[PlannedRun]] = defaultdict(list)
    order = {case: number for number, case in enumerate(cases)}
    for run in sorted(runs, key=lambda run: order[run.case]):
        grouped[run.case.framework, run.case.model].append(run)
    return [_HEADER, *(_row(*names, group, named) for names, group in grouped.items())]


def of_left_out(left_out: Sequence[LeftOut]) -> list[list[str]]:
    """The same of cases that are not run: a row for each reason."""
    grouped: dict[str, list[Case]] = defaultdict(list)
    for one in left_out:
        grouped[one.reason].append(one.case)
    rows = [[str(len(cases)), why, _shared(cases)] for why, cases in grouped.items()]
    return [["cases", "why", "which"], *rows]


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns padded to their widest cell, two spaces apart; empty columns are left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _row(
    framework: str, model: str, runs: Sequence[PlannedRun], named: Mapping[str, frozenset[str]]
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


def _shared(cases: Sequence[Case]) -> str:
    names = zip(*((case.framework, case.model) for case in cases), strict=True)
    return "; ".join(_listed(list(dict.fromkeys(one))) for one in names)


def axes(cases: Sequence[Case], named: Mapping[str, frozenset[str]]) -> str:
    """What cases have of each axis but framework and model: ``train, inference; fp32``."""
    parameters = dict.fromkeys(
        name
        for case in cases
        for name, _ in case.parameters
        if name in named.get(case.mode, frozenset())
    )
    columns: list[Callable[[Case], str]] = [
        lambda case: case.mode,
        lambda case: case.precision,
        lambda case: case.compiler,
        lambda case: case.topology,
        lambda case: f"batch {case.batch_per_device}" if case.batch_per_device else "",
        lambda case: f"accumulation {case.accumulation}" if case.accumulation > 1 else "",
        lambda case: f"total {case.batch_total}" if case.parts > 1 and case.batch_total else "",
        lambda case: case.parallelism if case.parallelism != DATA else "",
        lambda case: f"input {case.input}" if case.input != SYNTHETIC else "",
        lambda case: f"seq {case.sequence_length}" if case.sequence_length else "",
        *(partial(_parameter, name) for name in parameters),
        lambda case: f"variant {case.variant}" if case.variant else "",
        lambda case: f"node {case.node}" if case.node else "",
    ]
    values = [list(dict.fromkeys(filter(None, map(value_of, cases)))) for value_of in columns]
    return "; ".join(_listed(sorted(one, key=_number)) for one in values if one)


def _parameter(name: str, case: Case) -> str:
    values = dict(case.parameters)
    return f"{name} {values[name]}" if name in values else ""


def _number(value: str) -> int:
    """Sorts ``batch 64`` before ``batch 128``, and leaves what is no number where it stands."""
    digits = value.rpartition(" ")[2]
    return int(digits) if digits.isdecimal() else 0


def _listed(values: Sequence[str]) -> str:
    """``batch 2, 4``: a word that all begin with stands once."""
    first, _, _ = values[0].partition(" ")
    if len(values) > 1 and all(one.startswith(f"{first} ") for one in values):
        return f"{first} {_listed([one.removeprefix(f'{first} ') for one in values])}"
    if len(values) > _MOST:
        return f"{values[0]} .. {values[-1]} ({len(values)})"
    return ", ".join(values)
