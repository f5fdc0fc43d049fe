"""Tables of benchmarks other than steps, with a row per metric and case.

Columns follow from the cases: their axes and their parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pandas as pd
from core.case import Case
from pandas.api.types import infer_dtype

from ..cases.conditions import CONDITIONS, Key, Parameters
from ..cases.names import topology, topology_of
from . import formatting
from .columns import COUNT, GROUPS, NUMBER, TEXT, Column, Row, declarations, shared
from .results import FIGURES, CaseResult, CaseResults
from .table import Table, frame_rows

#: Label of cases without a framework.
NO_FRAMEWORK = "no framework"
#: Axes that labels may need.
_AXES = ("framework_version", "precision", "compiler", "batch_per_device")


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
    the case."""
    rows = {
        result.key: {**result.key.row, "parameters": parameters_text(result.case)}
        for result in results
    }
    parameters_of = formatting.own_parameters([*rows.values()])
    has_several = len({row["model"] for row in rows.values()}) > 1

    def name(row: Row) -> str:
        devices = topology(row["nodes"], row["devices_per_node"])
        parts = [row["framework"] or NO_FRAMEWORK, devices, row["model"] * has_several]
        return ", ".join(filter(None, [*parts, parameters_of(row)]))

    label = formatting.distinct_names([*rows.values()], name, more=_AXES)
    return lambda result: label(rows[result.key])


def tables(cases: CaseResults) -> list[Table]:
    """Return a table per benchmark other than steps, sorted by name."""
    return [_table(kind, results) for kind, results in by_kind(cases).items()]


def _table(kind: str, results: Sequence[CaseResult]) -> Table:
    shown = [*_shown(results)]
    axes = [name for name in GROUPS["trained"] if any(getattr(one.case, name) for one in results)]
    # Parameters and points do not take the names of other columns.
    reserved = {*GROUPS["result"], "metric", *FIGURES}
    own = _named([one.case.parameters for one in shown], "parameter_", reserved)
    where = _named([one.key.point for one in shown], "at_", {*reserved, *own})
    parameters = _columns(own, "parameter of the benchmark")
    points = _columns(where, "point at which the metric was measured")
    keys = (*shared(*axes), *parameters, *shared(*CONDITIONS, "metric"), *points)
    names = tuple(column.name for column in keys)

    def identity(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in (*names, "unit"))

    figures = [
        {**one.key.row, "metric": one.key.metric, **{name: of(one) for name, of in FIGURES.items()}}
        for one in shown
    ]
    frame = pd.concat([pd.DataFrame(figures, dtype=object), own, where], axis="columns")
    runs = {identity(row): one.runs for row, one in zip(frame_rows(frame), shown, strict=True)}
    title = kind.replace("_", " ")
    return Table(
        name=f"{kind}_kind" if kind in (*declarations(), "compare") else kind,
        title=title[:1].upper() + title[1:],
        explanation="A row for each metric of each case: the median over repeats, its extremes, "
        "and a distribution-free 95 % interval of the median.",
        columns=(*keys, *shared(*FIGURES)),
        rows=lambda inputs: frame,
        keys=names,
        group="Other measurements",
        drawing="metrics",
        drawing_of=kind,
        answers=("median", "unit"),
        runs=lambda row: runs[identity(row)],
    )


def _named(given: Sequence[Parameters], prefix: str, reserved: Collection[str]) -> pd.DataFrame:
    """Return named values as a data frame; names in ``reserved`` get the prefix.

    Columns with any value that is not a number become texts."""
    frame = pd.DataFrame([dict(some) for some in given], range(len(given)), dtype=object)
    frame = frame.rename(columns=lambda name: f"{prefix}{name}" if name in reserved else name)
    frame = frame.where(frame.notna(), None)
    texts = [name for name, values in frame.items() if _type(values) == TEXT]
    return frame.assign(**{str(name): frame[name].map(_text) for name in texts})


def _columns(frame: pd.DataFrame, explanation: str) -> list[Column]:
    return [Column(str(name), _type(values), explanation) for name, values in frame.items()]


def _type(values: pd.Series[Any]) -> str:
    """Return the type of a column of these values, some of which may be missing."""
    types = {"integer": COUNT, "floating": NUMBER, "mixed-integer-float": NUMBER}
    return types.get(infer_dtype(values.dropna()), TEXT)


def _shown(results: Sequence[CaseResult]) -> Iterator[CaseResult]:
    """Yield results with a figure; a case without any yields one result, not one per point."""
    first: set[tuple[Any, ...]] = set()
    for result in results:
        key = (result.case, result.conditions)
        if not result.key.point or result.values or key not in first:
            yield result
        first.add(key)


def figure_name(key: Key) -> str:
    """Return the name of a figure, without conditions."""
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
    """Return a parameter's value as suites write it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
