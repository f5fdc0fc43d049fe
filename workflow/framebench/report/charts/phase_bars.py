"""Stacked bars of wall time by phase: all runs together, and one run of each case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ...cases.names import topology_of
from ...tables.declared.run_phases import WORDS
from .. import stacked_bars
from ..plots import Plot
from ..selection import axes_of, is_known, labels, left_out, rows_of, spread
from ..stacked_bars import Bar

MAX_ROWS = 40
#: Title of each part of a bar by column, in the order of a run.
PARTS = {**{f"{name}_seconds": title for name, (title, _) in WORDS.items()},
         "unattributed_seconds": "not told"}  # fmt: skip
#: Values from which the next larger unit is used.
_MANY = 300


def of_suite(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of all runs, with a bar in total and one per framework; [] without phases."""
    bars = [Bar(row.framework, _seconds(row)) for row in rows_of(table)]
    if not any(is_known(row.window_seconds) for row in rows_of(table)):
        return []
    return [_plot("Time of all runs together", bars, f"Nothing is left out (rows: {len(bars)}).")]


def of_cases(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of one run per case; [] if no record has phases."""
    every = [row for row in rows_of(table) if is_known(row.run_seconds)]
    if not every:
        return []
    chosen = spread(every, lambda row: (row.model, row.mode, row.framework), MAX_ROWS)

    def bars_of(rows: Sequence[Any]) -> list[Bar]:
        name = _names(rows)
        some = (Bar(name(row), _seconds(row), axes=axes_of(row._asdict())) for row in rows)
        return sorted(some, key=lambda bar: bar.label)

    bars = stacked_bars.grouped(chosen, ("model", "mode"), bars_of)
    return [_plot("Time of a run of each case", bars, left_out(len(chosen), len(every), "cases"))]


def _names(rows: Sequence[Any]) -> Callable[[Any], str]:
    """Return a function that labels a row by framework and whatever distinguishes it."""
    label = labels([row._asdict() for row in rows])
    asked = {row: (topology_of(row), row.precision, f"batch {row.batch_per_device}")
             for row in rows}  # fmt: skip
    apart = [len(set(values)) > 1 for values in zip(*asked.values(), strict=True)]

    def name(row: Any) -> str:
        parts = [word for word, tells in zip(asked[row], apart, strict=True) if tells]
        return ", ".join([label(row._asdict()), *parts])

    return name


def _seconds(row: Any) -> list[float]:
    values = (getattr(row, part, None) for part in PARTS)
    return [float(value) if value is not None and is_known(value) else 0.0 for value in values]


def _plot(title: str, bars: Sequence[Bar], text: str) -> Plot:
    """Return a plot of bars given in seconds, converted to minutes or hours if long."""
    unit, scale = _unit(max((sum(bar.values) for bar in bars), default=0.0))
    scaled = [
        replace(
            bar,
            values=[value / scale for value in bar.values],
            end=f"{sum(bar.values) / scale:.1f}",
        )
        for bar in bars
    ]
    return stacked_bars.plot(
        title,
        scaled,
        list(PARTS.values()),
        unit,
        f"{title}: a bar for each of {sum(bool(bar.values) for bar in bars)}, made of "
        "the phases of runs. The numbers stand in the table below.",
        f"The number is the whole. Only the window is measured. {text}",
    )


def _unit(seconds: float) -> tuple[str, float]:
    for unit, scale in (("seconds", 1.0), ("minutes", 60.0)):
        if seconds < _MANY * scale:
            return unit, scale
    return "hours", 3600.0
