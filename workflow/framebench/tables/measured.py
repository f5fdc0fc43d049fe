"""Other kinds of measurement than steps: a table for each, with a row for each metric of each case,
and their figures in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ..cases.conditions import CONDITIONS, Case
from ..cases.names import topology_of
from ..statistics import shape
from . import condition_words
from .cases import CaseResult, CaseResults, marks_of
from .columns import COLUMNS, NUMBER, TEXT, WHOLE, Column, frame

#: Of a case, as far as a kind has it; behind them stand its parameters and the conditions.
AXES = ("framework", "framework_version", "source", "model", "precision", "compiler", "nodes",
         "devices_per_node", "batch_per_device")  # fmt: skip
#: At the end.
FIGURES = ("metric", "median", "unit", "minimum", "maximum", "median_ci_low", "median_ci_high",
            "spread", "better", "repeats", "status", "reason", "remarks", "marks")  # fmt: skip


#: What a case runs in that needs no framework.
NO_FRAMEWORK = "no framework"
PRINTED_ROWS = 50


def runs_in(case: Case) -> str:
    """The framework that a case runs in, in words."""
    return case.framework or NO_FRAMEWORK


def labels(results: Sequence[CaseResult]) -> Callable[[CaseResult], str]:
    """Names for cases of one kind: in what they run, on how many devices, and what else of a case,
    its parameters and conditions tells them apart."""
    words = [_words(result) for result in results]
    apart = {name for name in words[0] if len({one.get(name) for one in words}) > 1}

    def label(result: CaseResult) -> str:
        own = {name: word for name, word in _words(result).items() if word and name in apart}
        return ", ".join([runs_in(result.case), topology_of(result.case), *own.values()])

    return label


def _words(result: CaseResult) -> dict[str, str]:
    case, conditions = result.case, result.conditions
    axes = {axis: getattr(case, axis) for axis in ("framework_version", "model", "precision")}
    axes["compiler"] = "" if case.compiler == "none" else case.compiler
    axes["batch"] = f"batch {case.batch_per_device}" if case.batch_per_device else ""
    own = {f"parameter {name}": f"{name} {_text(value)}" for name, value in case.parameters}
    others = {name: condition_words.short(name, getattr(conditions, name)) for name in CONDITIONS}
    return {**axes, **own, **others}


def summary_text(cases: CaseResults) -> str:
    """All such cases for a terminal, numbers rounded for reading; "" without any."""
    results = [result for result in cases.values() if not result.case.is_step]
    kinds: dict[str, list[CaseResult]] = defaultdict(list)
    for result in results:
        kinds[result.case.mode].append(result)
    lines = []
    for result in results[:PRINTED_ROWS]:
        label = labels(kinds[result.case.mode])(result)
        if result.throughput is None:
            figure, note = f"{result.status:>12}", result.reason
        else:
            figure = f"{result.throughput:12.5g} {result.unit:<8}"
            note = f"of {len(result.values)} {marks_of(result)}"
        name = f"{result.case.mode} {result.key.metric}"
        lines.append(f"{name:<28} {label:<34} {figure} {note}".rstrip())
    if len(results) > PRINTED_ROWS:
        lines.append(f".. and {len(results) - PRINTED_ROWS} more in the tables")
    return "\n".join(lines)


def tables(cases: CaseResults) -> dict[str, pd.DataFrame]:
    """By the name of the kind."""
    kinds: dict[str, list[CaseResult]] = defaultdict(list)
    for result in cases.values():
        if not result.case.is_step:
            kinds[result.case.mode].append(result)
    return {kind: _table(results) for kind, results in sorted(kinds.items())}


def _table(results: Sequence[CaseResult]) -> pd.DataFrame:
    axes = [axis for axis in AXES if any(getattr(result.case, axis) for result in results)]
    parameters = _parameters(results)
    # A name that has a meaning of its own in the tables keeps it.
    names = {name: f"parameter_{name}" if name in COLUMNS else name for name in parameters}
    own = [
        Column(names[name], type_, "parameter of the kind") for name, type_ in parameters.items()
    ]
    columns = [*(COLUMNS[axis] for axis in axes), *own,
               *(COLUMNS[name] for name in (*CONDITIONS, *FIGURES))]  # fmt: skip
    return frame(columns, (_row(result, axes, parameters) for result in results))


def _parameters(results: Sequence[CaseResult]) -> dict[str, str]:
    """Names and types."""
    values: dict[str, list[Any]] = defaultdict(list)
    for result in results:
        for name, value in result.case.parameters:
            values[name].append(value)
    return {name: _type(found, len(results)) for name, found in values.items()}


def _type(values: Sequence[Any], rows: int) -> str:
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return TEXT
    whole = len(values) == rows and all(isinstance(value, int) for value in values)
    return WHOLE if whole else NUMBER


def _row(result: CaseResult, axes: Sequence[str], parameters: Mapping[str, str]) -> list[Any]:
    own = dict(result.case.parameters)
    low, high = result.interval or (None, None)
    return [
        *(getattr(result.case, axis) for axis in axes),
        *(_text(own.get(name)) if type_ == TEXT else own.get(name)
          for name, type_ in parameters.items()),
        *(getattr(result.conditions, name) for name in CONDITIONS),
        result.key.metric,
        result.throughput,
        result.unit,
        min(result.values, default=None),
        max(result.values, default=None),
        low,
        high,
        shape.spread(result.values),
        result.better,
        len(result.values) or len(result.runs),
        result.status,
        result.reason,
        "; ".join(result.remarks),
        marks_of(result),
    ]  # fmt: skip


def _text(value: Any) -> str:
    """As a suite has it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
