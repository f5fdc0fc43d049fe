"""Selection of a plot's rows, their labels, and texts about the rows left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd

from ..cases.names import topology
from ..tables import formatting
from ..tables.table import AXES

MAX_LABEL = 36
#: Name of a batch in labels, by column.
_BATCHES = {"batch_per_device": "batch", "total_batch": "total batch"}


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Return the rows of a frame, with columns as attributes."""
    return list(table.itertuples(index=False))


def is_known(value: float | None) -> bool:
    return value is not None and value == value


def training_first(key: Sequence[Any]) -> tuple[Any, ...]:
    """Return a sort key: by model, training before inference, then the rest."""
    model, mode, *rest = key
    return (model, mode != "train", mode, *rest)


def spread(items: Sequence[Any], kind: Callable[[Any], Any], limit: int) -> list[Any]:
    """Return up to ``limit`` items, taken in turn from each kind."""
    kinds: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        kinds[kind(item)].append(item)
    turns = zip_longest(*kinds.values())
    return [item for turn in turns for item in turn if item is not None][:limit]


# ---- framework and setting of a row --------------------------------------------------------------


def axis_of(row: Mapping[str, Any], axis: str) -> str | None:
    """Return the value of an axis in a row; None if the row has no such axis."""
    if axis == "devices" and "devices_per_node" in row:
        return topology(row.get("nodes", 1), row["devices_per_node"])
    if axis == "devices" and "devices" in row:
        return topology(1, row["devices"])
    return str(row[axis]) if axis in row else None


def axes_of(row: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, str]:
    """Return a row's values by axis, for the page's filter.

    ``without``: axes of which the row has several values."""
    values = ((axis, axis_of(row, axis)) for axis in AXES if axis not in without)
    return {axis: value for axis, value in values if value is not None}


def axes_of_other(row: Mapping[str, Any]) -> dict[str, str]:
    """Return values by axis for a row of another benchmark than steps.

    Empty values and the mode are left out: readers filter by neither."""
    return {axis: value for axis, value in axes_of(row, without=("mode",)).items() if value}


# ---- names ---------------------------------------------------------------------------------------


def labels(
    rows: Sequence[Mapping[str, Any]], batch: str = ""
) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that gives the shortest distinct label of a row.

    A label has the framework, and version, source, conditions and the column ``batch`` only if
    these distinguish rows of one framework."""
    parts: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "version": lambda row: str(row["framework_version"]),
        "source": lambda row: str(row["source"]),
        "conditions": formatting.differing_conditions(rows),
    }
    if batch:
        parts["batch"] = lambda row: f"{_BATCHES[batch]} {row[batch]}"
    of_framework: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for row in rows:
        of_framework[row["framework"]].add(tuple(part(row) for part in parts.values()))
    telling = {name: _telling(values) for name, values in of_framework.items()}

    def name(row: Mapping[str, Any]) -> str:
        texts = [row["framework"]]
        if row.get("compiler", "none") != "none":
            texts[0] += f" + {row['compiler']}"
        values = [part(row) for part in parts.values()]
        texts += [values[at] for at in telling[row["framework"]] if values[at]]
        return short(", ".join(texts))

    return name


def _telling(values: set[tuple[str, ...]]) -> list[int]:
    """Return the indices of fields, the first ones preferred, that tell the tuples apart."""
    chosen: list[int] = []
    apart = 1
    for index in range(len(next(iter(values)))):
        if (more := len({tuple(v[p] for p in (*chosen, index)) for v in values})) > apart:
            chosen.append(index)
            apart = more
    return chosen


def short(text: str, most: int = MAX_LABEL) -> str:
    """Return a text of at most ``most`` characters, cut at the end."""
    return text if len(text) <= most else text[: most - 1].rstrip(" ,") + "…"


# ---- words ---------------------------------------------------------------------------------------


def without_ratio(count: int) -> str:
    return f" {count} cases have no ratio; the table says why." if count else ""


def left_out(shown: int, there: int, what: str) -> str:
    if shown == there:
        return f"Nothing is left out ({what}: {there})."
    return f"Left out: {there - shown} of {there} {what}."


def panels_left_out(there: int, most: int, table: str) -> str:
    if there <= most:
        return ""
    return f" {there - most} of {there} panels are not drawn; see the table {table}."
