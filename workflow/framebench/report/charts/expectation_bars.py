"""Expected and measured times as bars: gradient all-reduce, and operations within a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from ...cases.names import topology_of
from ...tables.formatting import number
from .. import stacked_bars
from ..plots import Plot
from ..selection import axes_of, is_known, labels, left_out, rows_of, spread, training_first
from ..stacked_bars import Bar

MAX_STEPS = 40
#: Most cases, each with up to one bar per entry of EXCHANGE.
MAX_EXCHANGES = 12
#: Title of a bar by column of the table.
EXCHANGE = {
    "expected_exchange_ms": "expected",
    "exchange_alone_ms": "alone",
    "lost_to_exchange_ms": "lost",
}
STEP = ("products and convolutions alone", "rest")


def of_exchange(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of expected and measured all-reduce times; [] without an expectation."""
    every = [row for row in rows_of(table) if is_known(row.expected_exchange_ms)]
    if not every:
        return []
    chosen = spread(every, lambda row: (row.model, row.framework), MAX_EXCHANGES)
    name = _names(chosen)
    bars: list[Bar] = []
    for row in chosen:
        axes = axes_of(row._asdict())
        bars.append(Bar(f"{row.model}, {row.precision}: {name(row)}", axes=axes))
        for at, (column, title) in enumerate(EXCHANGE.items()):
            value = getattr(row, column)
            if is_known(value):
                parts = [max(0.0, value) if n == at else 0.0 for n in range(len(EXCHANGE))]
                bars.append(Bar(title, parts, number(value), axes))
    return [
        Plot(
            title="Exchange of the gradients: expected and measured",
            svg=stacked_bars.draw(bars, tuple(EXCHANGE.values()), "ms of a step"),
            narrow=stacked_bars.draw(bars, tuple(EXCHANGE.values()), "ms of a step", narrow=True),
            description="What the exchange of gradients should take, takes alone, and costs a "
            f"step of {len(chosen)} cases. The numbers stand in the table.",
            caption="Alone longer than expected: the exchange costs more than its all-reduces. "
            "Lost shorter than alone: the rest overlaps with the backward pass. What is below "
            f"zero has no bar. {left_out(len(chosen), len(every), 'cases with an expectation')}",
        )
    ]


def of_products(table: pd.DataFrame) -> list[Plot]:
    """Return the plot of operations timed alone as a share of the step; [] without any."""
    every = [row for row in rows_of(table) if is_known(row.products_share)]
    if not every:
        return []
    groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in spread(every, lambda row: (row.model, row.mode, row.framework), MAX_STEPS):
        groups[row.model, row.mode, row.precision].append(row)
    bars: list[Bar] = []
    for group, rows in sorted(groups.items(), key=lambda one: training_first(one[0])):
        bars.append(Bar(", ".join(group)))
        name = _names(rows)
        for row in rows:
            share = 100 * row.products_share
            end = f"{number(row.step_time_ms)} ms"
            bars.append(Bar(name(row), [share, max(0.0, 100 - share)], end, axes_of(row._asdict())))
    shown = sum(map(len, groups.values()))
    return [
        Plot(
            title="What products and convolutions take of a step",
            svg=stacked_bars.draw(bars, STEP, "% of the step"),
            narrow=stacked_bars.draw(bars, STEP, "% of the step", narrow=True),
            description="The part of a step that its products and convolutions take alone, of "
            f"{shown} cases. The numbers stand in the table.",
            caption="The number is the step. A bar beyond 100 % has no rest: a compiler joins "
            f"operations. {left_out(shown, len(every), 'cases whose operations were measured')}",
        )
    ]


def _names(rows: Sequence[Any]) -> Callable[[Any], str]:
    """Return a function that names a row by framework, devices and, if it varies, batch."""
    label = labels([row._asdict() for row in rows], "batch_per_device")
    return lambda row: f"{label(row._asdict())}, {topology_of(row)}"
