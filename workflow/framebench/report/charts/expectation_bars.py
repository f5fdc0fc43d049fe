"""Expected and measured times as bars: gradient all-reduce, and operations within a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from ...tables.formatting import number
from .. import stacked_bars
from ..plots import Plot
from ..selection import axes_of, is_known, labels_with_devices, left_out, rows_of, spread
from ..stacked_bars import Bar

MAX_STEPS = 40
#: Most cases, each with up to one bar per entry of COMMUNICATION.
MAX_COMMUNICATION_CASES = 12
#: Title of a bar by column of the table.
COMMUNICATION = {
    "expected_all_reduce_ms": "expected",
    "all_reduce_alone_ms": "alone",
    "lost_to_communication_ms": "lost",
}
STEP = ("matmuls and convolutions alone", "rest")


def of_communication(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of expected and measured all-reduce times; [] without an expectation."""
    every = [row for row in rows_of(table) if is_known(row.expected_all_reduce_ms)]
    if not every:
        return []
    chosen = spread(every, lambda row: (row.model, row.framework), MAX_COMMUNICATION_CASES)
    name = labels_with_devices(chosen)
    bars: list[Bar] = []
    for row in chosen:
        axes = axes_of(row._asdict())
        bars.append(Bar(f"{row.model}, {row.precision}: {name(row)}", axes=axes))
        for at, (column, title) in enumerate(COMMUNICATION.items()):
            value = getattr(row, column)
            if is_known(value):
                parts = [max(0.0, value) if n == at else 0.0 for n in range(len(COMMUNICATION))]
                bars.append(Bar(title, parts, number(value), axes))
    return [
        stacked_bars.plot(
            "Communication of the gradients: expected and measured",
            bars,
            tuple(COMMUNICATION.values()),
            "ms of a step",
            "What communication of gradients should take, takes alone, and costs a "
            f"step of {len(chosen)} cases. The numbers stand in the table.",
            "Alone longer than expected: communication costs more than its all-reduces. "
            "Lost shorter than alone: the rest overlaps with the backward pass. What is below "
            f"zero has no bar. {left_out(len(chosen), len(every), 'cases with an expectation')}",
        )
    ]


def of_matmul_share(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of operations timed alone as a share of the step; [] without any."""
    every = [row for row in rows_of(table) if is_known(row.matmul_share)]
    if not every:
        return []
    chosen = spread(every, lambda row: (row.model, row.mode, row.framework), MAX_STEPS)

    def bars_of(rows: Sequence[Any]) -> Iterator[Bar]:
        name = labels_with_devices(rows)
        for row in rows:
            share = 100 * row.matmul_share
            end = f"{number(row.step_time_ms)} ms"
            yield Bar(name(row), [share, max(0.0, 100 - share)], end, axes_of(row._asdict()))

    what = "cases whose operations were measured"
    return [
        stacked_bars.plot(
            "What matmuls and convolutions take of a step",
            stacked_bars.grouped(chosen, ("model", "mode", "precision"), bars_of),
            STEP,
            "% of the step",
            "The part of a step that its matmuls and convolutions take alone, of "
            f"{len(chosen)} cases. The numbers stand in the table.",
            "The number is the step. A bar beyond 100 % has no rest: a compiler joins "
            f"operations. {left_out(len(chosen), len(every), what)}",
        )
    ]
