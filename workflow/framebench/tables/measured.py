"""Tables of benchmarks other than steps, with a row per metric and case.

Columns follow from the cases: their axes and their parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from core.case import Case

from ..cases.conditions import CONDITIONS, Key, Parameters
from ..cases.names import topology_of
from ..statistics import shape
from . import formatting
from .columns import (
    COUNT,
    GROUPS,
    NUMBER,
    TEXT,
    WHOLE,
    Column,
    Row,
    interval_cells,
    shared,
)
from .results import CaseResult, CaseResults, flags_of
from .table import Table

PARAMETERS, METRIC, MEDIAN = shared("parameters", "metric", "median")
FIGURES = shared(
    "median", "unit", "minimum", "maximum", "median_ci_low", "median_ci_high", "spread", "better",
    "repeats", "status", "reason", "remarks", "flags",
)  # fmt: skip
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

    A label has framework, devices, and whatever else distinguishes the cases and does not follow
    from framework and model."""
    parts = [_labels(result) for result in results]
    known = [(result.case.framework, result.case.model) for result in results]
    apart = {
        name
        for name in parts[0]
        if len({word.get(name) for word in parts}) > 1
        and (name == "model" or not _follows([word.get(name) for word in parts], known))
    }

    def label(result: CaseResult) -> str:
        own = {name: word for name, word in _labels(result).items() if word and name in apart}
        parts = (runs_in(result.case), topology_of(result.case), *own.values())
        return ", ".join(filter(None, parts))

    return label


def _follows(parts: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether each of ``others`` determines the word."""
    return len({*zip(parts, others, strict=True)}) == len({*others})


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
    axes = [axis for axis in GROUPS["trained"]
            if any(getattr(result.case, axis) for result in results)]  # fmt: skip
    # Names of table columns keep their meaning.
    taken = {*GROUPS["result"], METRIC.name, *(column.name for column in FIGURES)}
    parameters = _types((result.case.parameters for result in results), index=len(results))
    own = {name: f"parameter_{name}" if name in taken else name for name in parameters}
    points = _types((result.key.point for result in results), index=None)
    taken |= {*own.values()}
    where = {name: f"at_{name}" if name in taken else name for name in points}
    keys = (
        *shared(*axes),
        *(Column(own[name], type_, "parameter of the kind") for name, type_ in parameters.items()),
        *shared(*CONDITIONS),
        METRIC,
        *(
            Column(where[name], type_, "where it was measured", title=name)
            for name, type_ in points.items()
        ),
    )
    names = tuple(column.name for column in keys)

    def values(result: CaseResult) -> Row:
        given = {own[name]: value for name, value in result.case.parameters}
        given |= {where[name]: value for name, value in result.key.point}
        found = {column.name: given.get(column.name) for column in keys
                 if column.name in (*own.values(), *where.values())}  # fmt: skip
        texts = {column.name for column in keys if column.type == TEXT}
        return {name: _text(value) if name in texts else value for name, value in found.items()}

    rows = [{**result.key.row, **values(result), **_figures(result)} for result in _shown(results)]
    identity = (*names, "unit")
    by_key = {
        tuple(row[name] for name in identity): result.runs
        for row, result in zip(rows, _shown(results), strict=True)
    }
    title = kind.replace("_", " ")
    return Table(
        name=kind,
        title=title[:1].upper() + title[1:],
        explanation="A row for each metric of each case: the median over repeats, its extremes, "
        "and a distribution-free 95 % interval of the median.",
        columns=(*keys, *FIGURES),
        rows=lambda inputs: rows,
        keys=names,
        group="Other measurements",
        drawing="metrics",
        drawing_of=kind,
        answers=("median", "unit"),
        runs=lambda row: by_key[tuple(row[name] for name in identity)],
    )


def _figures(result: CaseResult) -> Row:
    """Return the metric of a case, and the values of the columns FIGURES."""
    return {
        "metric": result.key.metric,
        "median": result.throughput,
        "unit": result.unit,
        "minimum": min(result.values, default=None),
        "maximum": max(result.values, default=None),
        **interval_cells("median", result.interval),
        "spread": shape.spread(result.values),
        "better": result.better,
        "repeats": len(result.values) or len(result.runs),
        "status": result.status,
        "reason": result.reason,
        "remarks": "; ".join(result.remarks),
        "flags": flags_of(result),
    }


def _shown(results: Sequence[CaseResult]) -> Iterator[CaseResult]:
    """Yield results with a figure; a case without any yields one result, not one per point."""
    first: set[tuple[Any, ...]] = set()
    for result in results:
        key = (result.case, result.conditions)
        if not result.key.point or result.values or key not in first:
            yield result
        first.add(key)


def _types(named: Iterable[Parameters], index: int | None) -> dict[str, str]:
    """Return the column type of each named value.

    ``index``: number of rows; None if some have no value."""
    values: dict[str, list[Any]] = defaultdict(list)
    for some in named:
        for name, value in some:
            values[name].append(value)
    return {name: _type(some, index) for name, some in values.items()}


def _type(values: Sequence[Any], rows: int | None) -> str:
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return TEXT
    if not all(isinstance(value, int) for value in values):
        return NUMBER
    return WHOLE if len(values) == rows else COUNT if rows is None else NUMBER


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
