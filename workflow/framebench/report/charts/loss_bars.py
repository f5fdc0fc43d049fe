"""Bars of weak-scaling losses by cause, for each case with a control."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from .. import stacked_bars
from ..plots import Plot
from ..selection import axes_of, is_known, labels_with_devices, left_out, rows_of, spread
from ..stacked_bars import Bar

MAX_ROWS = 40
PARTS = ("reached", "shared hardware", "communication", "rest", "communication and rest")


def of_weak_scaling(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of losses by cause; [] if no case has a control."""
    every = [row for row in rows_of(table) if is_known(row.shared_hardware_loss)]
    if not every:
        return []
    chosen = spread(every, lambda row: (row.model, row.framework), MAX_ROWS)

    def bars_of(rows: Sequence[Any]) -> Iterator[Bar]:
        name = labels_with_devices(rows)
        for row in rows:
            lost = f"{100 * (1 - row.efficiency):.1f}"
            yield Bar(name(row), _parts(row), lost, axes_of(row._asdict()))

    return [
        stacked_bars.plot(
            "What devices lose, and to what",
            stacked_bars.grouped(chosen, ("model", "mode", "precision"), bars_of),
            PARTS,
            "% of as many single devices",
            f"What {len(chosen)} cases on several devices reach of as many single devices, "
            "and what they lose to shared hardware, to communication and to the rest. The numbers "
            "stand in the table below.",
            "The number is what is lost in all. A part below zero, which is less than can "
            "be told, is not drawn. " + left_out(len(chosen), len(every), "cases with a control"),
        )
    ]


def _parts(row: Any) -> Sequence[float]:
    """Return percentages in the order of PARTS; negative parts become 0."""
    if is_known(row.all_reduce_loss):
        communication = [row.all_reduce_loss, row.rest_loss, 0.0]
    else:
        communication = [0.0, 0.0, row.communication_loss]
    return [
        100 * max(0.0, part) for part in (row.efficiency, row.shared_hardware_loss, *communication)
    ]
