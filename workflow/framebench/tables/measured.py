"""Tables of benchmarks other than steps, with a row per metric and case.

Columns follow from the cases: their axes and their parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from core.case import Case

from ..cases.conditions import CONDITIONS, Key, Parameters
from ..cases.names import topology_of
from . import formatting
from .columns import COUNT, GROUPS, NUMBER, TEXT, Column, Row, shared
from .results import FIGURES, CaseResult, CaseResults
from .table import Table

#: Label of cases without a framework.
NO_FRAMEWORK = "no framework"


def runs_in(case: Case) -> str:
    """Return the framework of a case, or NO_FRAMEWORK."""
    return case.framework or NO_FRAMEWORK


def by_kind(cases: CaseResults) -> dict[str, list[CaseResult]]:
    """Return the cases of each benchmark other than steps, sorted by its name."""
    kinds: dict[str, list[CaseResult]] = defaultdict(list)
    for result in cases.values():
        if not result.case.is_step:
            kinds[result.case.mode].append(result)
    return dict(sorted(kinds.items()))


def labels(results: Sequence[CaseResult]) -> Callable[[CaseResult], str]:
    """Return a function that labels cases of one benchmark.

    A label has framework, devices, the model if there are several, and whatever else distinguishes
    cases of a framework and a model."""
    parts = [_labels(result) for result in results]
    known = [(result.case.framework, result.case.model) for result in results]
    apart = {
        name
        for name in parts[0]
        if len({*zip((some.get(name) for some in parts), known, strict=True)}) > len({*known})
    }
    if len({model for _, model in known}) > 1:
        apart.add("model")

    def label(result: CaseResult) -> str:
        own = {name: word for name, word in _labels(result).items() if word and name in apart}
        parts = (runs_in(result.case), topology_of(result.case), *own.values())
        return ", ".join(filter(None, parts))

    return label


def _labels(result: CaseResult) -> dict[str, str]:
    case, row = result.case, result.key.row
    axes = {axis: getattr(case, axis) for axis in ("framework_version", "model", "precision")}
    axes["compiler"] = "" if case.compiler == "none" else case.compiler
    axes["batch"] = f"batch {case.batch_per_device}" if case.batch_per_device else ""
    own = {f"parameter {name}": f"{name} {_text(value)}" for name, value in case.parameters}
    others = {name: formatting.condition_label(name, row[name]) for name in CONDITIONS}
    return {**axes, **own, **others}


def tables(cases: CaseResults) -> list[Table]:
    """Return a table per benchmark other than steps, sorted by name."""
    return [_table(kind, results) for kind, results in by_kind(cases).items()]


def _table(kind: str, results: Sequence[CaseResult]) -> Table:
    shown = [*_shown(results)]
    axes = [name for name in GROUPS["trained"] if any(getattr(one.case, name) for one in results)]
    # Names of table columns keep their meaning.
    taken = {*GROUPS["result"], "metric", *FIGURES}
    parameters, points = [one.case.parameters for one in shown], [one.key.point for one in shown]
    own = _columns(parameters, "parameter of the kind", "parameter_", taken)
    taken |= {column.name for column in own.values()}
    where = _columns(points, "device, settings and environment", "at_", taken)
    keys = (*shared(*axes), *own.values(), *shared(*CONDITIONS, "metric"), *where.values())
    names = tuple(column.name for column in keys)

    def identity(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in (*names, "unit"))

    rows = [
        one.key.row
        | _cells(own, one.case.parameters)
        | _cells(where, one.key.point)
        | {"metric": one.key.metric}
        | {name: value(one) for name, value in FIGURES.items()}
        for one in shown
    ]
    runs = {identity(row): one.runs for row, one in zip(rows, shown, strict=True)}
    title = kind.replace("_", " ")
    return Table(
        name=kind,
        title=title[:1].upper() + title[1:],
        explanation="A row for each metric of each case: the median over repeats, its extremes, "
        "and a distribution-free 95 % interval of the median.",
        columns=(*keys, *shared(*FIGURES)),
        rows=lambda inputs: rows,
        keys=names,
        group="Other measurements",
        drawing="metrics",
        drawing_of=kind,
        answers=("median", "unit"),
        runs=lambda row: runs[identity(row)],
    )


def _columns(
    given: Sequence[Parameters], explanation: str, prefix: str, taken: Collection[str]
) -> dict[str, Column]:
    """Return the column of each named value; names of other columns get the prefix."""
    values: dict[str, list[Any]] = defaultdict(list)
    for some in given:
        for name, value in some:
            values[name].append(value)
    return {
        name: Column(f"{prefix}{name}" if name in taken else name, _type(found), explanation)
        for name, found in values.items()
    }


def _type(values: Sequence[Any]) -> str:
    """Return the type of a column of these values, of which some rows may have none."""
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return TEXT
    return COUNT if all(isinstance(value, int) for value in values) else NUMBER


def _cells(columns: Mapping[str, Column], given: Parameters) -> dict[str, Any]:
    """Return the values of the columns."""
    values = dict(given)
    return {
        column.name: _text(values.get(name)) if column.type == TEXT else values.get(name)
        for name, column in columns.items()
    }


def _shown(results: Sequence[CaseResult]) -> Iterator[CaseResult]:
    """Yield results with a figure; a case without any yields one result, not one per point."""
    first: set[tuple[Any, ...]] = set()
    for result in results:
        key = (result.case, result.conditions)
        if not result.key.point or result.values or key not in first:
            yield result
        first.add(key)


def figure_name(key: Key) -> str:
    """Return the name of a figure, without settings and environment."""
    case = key.case
    if case.is_step:
        parts = [case.framework, case.model, case.mode, case.precision, case.compiler]
        parts += [topology_of(case), f"batch {case.batch_per_device}"]
    else:
        parts = [case.mode, key.metric, case.framework, topology_of(case)]
        parts.append(parameters_text(case, key.point))
    return " ".join(filter(None, parts))


def parameters_text(case: Case, point: Parameters = ()) -> str:
    """Return the parameters of a case and the point of a metric as text; "" for steps."""
    return ", ".join(f"{name} {_text(value)}" for name, value in (*case.parameters, *point))


def _text(value: Any) -> str:
    """Return a parameter's value as in a suite."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
