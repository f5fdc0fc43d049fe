"""Data frames of runs and of cases, the input of tables.

Runs have a row each, with axes, repeat and outcome. Cases have a row each, with a column per axis,
condition and figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import pandas as pd

from ..cases.conditions import CASE
from ..records.run import Run
from .columns import COLUMNS, Column, Row
from .results import CaseResult

_OF_RUNS = (*CASE, "repeat", "status", "reason", "wall_seconds", "record", "keys")
_values_of = attrgetter(*(f"case.{name}" for name in CASE), *_OF_RUNS[len(CASE) :])
#: Columns of cases, with or without a baseline, that a table need not have.
_OF_CASES = {*COLUMNS, "key", "base", "throughput_baseline"}


def run_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return a row per run: axes, repeat, outcome, ``keys`` of its figures, and the ``run``."""
    listed = list(runs)
    frame = pd.DataFrame(map(_values_of, listed), columns=_OF_RUNS, dtype=object)
    return frame.assign(run=pd.Series(listed, dtype=object))


def figure_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return a row per figure of a run, with its ``key`` and its ``value``, NaN if the run failed.

    Further columns are those of :func:`run_frame`."""
    figures = run_frame(runs).rename(columns={"keys": "key"}).explode("key", ignore_index=True)
    found = [
        run.value(key.metric, key.point) if run.status == "ok" else None
        for run, key in zip(figures["run"], figures["key"], strict=True)
    ]
    return figures.assign(value=pd.Series(found, dtype="float64"))


def case_frame(results: Iterable[CaseResult]) -> pd.DataFrame:
    """Return a row per case: its key, the case itself as ``result``, and shared columns."""
    listed = list(results)
    columns = {column.name: values(column, listed) for column in COLUMNS.values() if column.value}
    columns["result"] = pd.Series(listed, dtype=object)
    columns["key"] = pd.Series([result.key for result in listed], dtype=object)
    return pd.DataFrame(columns)


def values(column: Column, results: Iterable[CaseResult]) -> pd.Series[Any]:
    """Return the values of a column in its declared type, one per case."""
    found = map(column.value, results) if column.value else ()
    return pd.Series(list(found), dtype=column.type)


def with_cells(cases: pd.DataFrame, cells: Iterable[Row]) -> pd.DataFrame:
    """Return ``cases`` with further columns. ``cells``: their values by name, one row per case."""
    return cases.assign(**pd.DataFrame(list(cells), index=cases.index, dtype=object))


def typed(name: str, columns: Sequence[Column], rows: pd.DataFrame | Iterable[Row]) -> pd.DataFrame:
    """Return a data frame with the columns of the table ``name`` in their declared types.

    Values that ``rows`` lack are computed from the case in their column ``result``. Raises
    ValueError if a value is missing, or has no column."""
    names = {"result", *(column.name for column in columns)}
    if isinstance(rows, pd.DataFrame):
        found = rows.reset_index(drop=True)
        differing = {*found} - names - _OF_CASES
    else:
        listed = list(rows)
        found = pd.DataFrame(listed, dtype=object)
        differing = set().union(*(({*found} ^ row.keys()) | (row.keys() - names) for row in listed))
    if differing:
        raise ValueError(
            f"table {name}: its columns and those of a row differ: {', '.join(sorted(differing))}"
        )
    for column in columns if len(found) else ():
        if column.name not in found and not (column.value and "result" in found):
            raise ValueError(f"table {name}: its rows lack the column {column.name}")
    return pd.DataFrame(
        {
            column.name: pd.Series(found[column.name], dtype=column.type)
            if column.name in found
            else values(column, found.get("result", ()))
            for column in columns
        }
    )
