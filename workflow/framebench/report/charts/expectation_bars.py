"""Expected and measured times of the gradient all-reduce as bars."""

from __future__ import annotations

import pandas as pd

from ...tables.formatting import number
from .. import stacked_bars
from ..plots import Plot
from ..selection import axes_of, is_known, labels_with_devices, left_out, rows_of, spread
from ..stacked_bars import Bar

#: Most cases, each with up to one bar per entry of COMMUNICATION.
MAX_COMMUNICATION_CASES = 12
#: Title of a bar by column of the table.
COMMUNICATION = {
    "expected_all_reduce_ms": "expected",
    "all_reduce_alone_ms": "alone",
}


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
                parts = [value if n == at else 0.0 for n in range(len(COMMUNICATION))]
                bars.append(Bar(title, parts, number(value), axes))
    return [
        stacked_bars.plot(
            "Communication of the gradients: expected and measured",
            bars,
            tuple(COMMUNICATION.values()),
            "ms of a step",
            "What communication of gradients should take, and takes alone, in a "
            f"step of {len(chosen)} cases. The numbers stand in the table.",
            "Alone longer than expected: communication costs more than its all-reduces. "
            + left_out(len(chosen), len(every), "cases with an expectation"),
        )
    ]
