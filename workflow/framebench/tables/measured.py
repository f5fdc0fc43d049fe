"""A table for each kind of measurement besides steps: a row for each metric of each case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ..cases.conditions import CONDITIONS
from ..statistics import shape
from .cases import CaseResult, CaseResults, marks_of
from .columns import COLUMNS, NUMBER, TEXT, WHOLE, Column, frame

#: Of a case, as far as a kind has it; behind them stand its parameters and the conditions.
AXES = ("framework", "framework_version", "source", "model", "precision", "compiler", "nodes",
         "devices_per_node", "batch_per_device")  # fmt: skip
#: At the end.
FIGURES = ("metric", "median", "unit", "minimum", "maximum", "median_ci_low", "median_ci_high",
            "spread", "better", "repeats", "status", "reason", "remarks", "marks")  # fmt: skip


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
