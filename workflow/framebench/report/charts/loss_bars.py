"""Bars of weak-scaling losses by cause, for each case with a control."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ...cases.names import topology_of
from .. import stacked_bars
from ..plots import Plot
from ..selection import axes_of, is_known, labels, left_out, rows_of, spread, training_first
from ..stacked_bars import Bar

MAX_ROWS = 40
PARTS = ("reached", "shared hardware", "communication", "rest", "communication and rest")


def of_weak_scaling(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of losses by cause; [] if no case has a control."""
    every = [row for row in rows_of(table) if is_known(row.shared_hardware_loss)]
    if not every:
        return []
    groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in spread(every, lambda row: (row.model, row.framework), MAX_ROWS):
        groups[row.model, row.mode, row.precision].append(row)
    bars: list[Bar] = []
    for group, rows in sorted(groups.items(), key=lambda one: training_first(one[0])):
        bars.append(Bar(", ".join(group)))
        label = labels([row._asdict() for row in rows], "batch_per_device")
        bars += [
            Bar(
                f"{label(row._asdict())}, {topology_of(row)}",
                _parts(row),
                _lost(row),
                axes_of(row._asdict()),
            )
            for row in rows
        ]
    shown = sum(map(len, groups.values()))
    unit = "% of as many single devices"
    return [
        Plot(
            title="What devices lose, and to what",
            svg=stacked_bars.draw(bars, PARTS, unit),
            narrow=stacked_bars.draw(bars, PARTS, unit, narrow=True),
            description=f"What {shown} cases on several devices reach of as many single devices, "
            "and what they lose to shared hardware, to communication and to the rest. The numbers "
            "stand in the table below.",
            caption="The number is what is lost in all. A part below zero, which is less than can "
            "be told, is not drawn. " + left_out(shown, len(every), "cases with a control"),
        )
    ]


def _parts(row: Any) -> Sequence[float]:
    """Return percentages in the order of PARTS; negative parts become 0."""
    if is_known(row.communication_loss):
        exchange = [row.communication_loss, row.rest_loss, 0.0]
    else:
        exchange = [0.0, 0.0, row.exchange_loss]
    return [100 * max(0.0, part) for part in (row.efficiency, row.shared_hardware_loss, *exchange)]


def _lost(row: Any) -> str:
    return f"{100 * (1 - row.efficiency):.1f}"
