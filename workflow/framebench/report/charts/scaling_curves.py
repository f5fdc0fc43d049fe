"""Efficiency by number of devices, for weak or strong scaling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ...cases.conditions import CONDITIONS
from ...cases.names import topology_of
from ...tables.formatting import number
from .. import line_charts
from ..parts import Parts
from ..plots import Look, Plot
from ..selection import (
    axes_of,
    is_known,
    labels,
    left_out,
    panels_left_out,
    rows_of,
    spread,
    training_first,
    without_ratio,
)
from ..svg import FONT, INK, MUTED

MAX_PANELS = 6
MAX_LINES = 10

#: Rows of one setting, by number of devices, then nodes.
ScalingLine = line_charts.ChartLine[Any]


def panels(table: pd.DataFrame, look: Look, title: str) -> list[Plot]:
    """Return a plot per model, mode and precision.

    Each setting with a speed-up on several numbers of devices is a line. ``title``: the kind of
    scaling, a colon, and what stays equal when devices are added."""
    batch = "total_batch" if "total_batch" in table else "batch_per_device"
    name, _, same = title.partition(": ")
    found: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Any]]] = defaultdict(dict)
    without: Counter[tuple[str, str, str]] = Counter()
    for row in rows_of(table):
        panel = (row.model, row.mode, row.precision)
        if not is_known(row.speedup):
            without[panel] += 1
            continue
        line = (row.framework, row.framework_version, row.source, row.compiler)
        # Text, because missing values have no order.
        conditions = (str(getattr(row, name)) for name in CONDITIONS)
        key = (*line, *conditions, getattr(row, batch))
        found[panel].setdefault(key, []).append(row)
    full = {
        panel: {key: rows for key, rows in lines.items() if len({r.devices for r in rows}) > 1}
        for panel, lines in found.items()
    }
    full = {panel: lines for panel, lines in full.items() if lines}
    drawn = []
    for panel in sorted(full, key=training_first)[:MAX_PANELS]:
        lines = full[panel]
        label = labels([rows[0]._asdict() for rows in lines.values()], batch)
        chosen = spread(sorted(lines), lambda key: key[0], MAX_LINES)
        made = [
            ScalingLine(
                label(lines[key][0]._asdict()),
                key[0],
                _on_fewest_nodes(lines[key]),
                axes_of(lines[key][0]._asdict(), without=["devices"]),
            )
            for key in sorted(chosen)
        ]
        drawn.append(
            Plot(
                title=", ".join(panel),
                svg=_draw(made, look, title),
                description=f"{name} of {', '.join(panel)}: efficiency of "
                f" {len(made)} settings, with {same}. The numbers are in the "
                "table below.",
                caption=f"{title}. Grey is the ideal, a bar the 95 % interval; a point "
                "without one has none, for too few repeats. Each number of devices is on the "
                "fewest nodes. A slow single device makes a speed-up look good: read it beside "
                "the throughput. "
                + left_out(len(made), len(lines), "settings with more than one device count")
                + without_ratio(without[panel])
                + panels_left_out(len(full), MAX_PANELS, "below"),
            )
        )
    return drawn


def _on_fewest_nodes(rows: Sequence[Any]) -> list[Any]:
    """Return one row per number of devices, in ascending order."""
    ordered = sorted(rows, key=lambda row: (row.devices, row.nodes))
    return [next(same) for _, same in groupby(ordered, lambda row: row.devices)]


def _draw(lines: Sequence[ScalingLine], look: Look, title: str) -> Markup:
    """Return the efficiency by number of devices as SVG, with the ideal."""
    name, _, same = title.partition(": ")
    devices = sorted({row.devices for line in lines for row in line.points} | {1})

    def one(axes: Axes, line: ScalingLine, style: line_charts.Style, parts: Parts) -> None:
        percents = [100 * row.efficiency for row in line.points]
        axes.plot([row.devices for row in line.points], percents, label=line.label, markersize=6,
                  **style)  # fmt: skip
        for row in line.points:
            percent = 100 * row.efficiency
            said = (
                f"{line.label}, {topology_of(row)}: {number(row.speedup)}, {percent:.1f} % of ideal"
            )
            # One device is compared with itself.
            if is_known(row.speedup_ci_low) and row.speedup_ci_low != row.speedup_ci_high:
                ends = map(number, (row.speedup_ci_low, row.speedup_ci_high))
                said += "; 95 % interval {} to {}".format(*ends)
                axes.vlines(
                    [row.devices], 100 * row.efficiency_ci_low, 100 * row.efficiency_ci_high,
                    color=style["color"], linewidth=3, alpha=0.35, gid=style["gid"],
                )  # fmt: skip
            parts.point(style["gid"], axes, (row.devices, percent), said)

    def finish(axes: Axes) -> None:
        axes.axhline(100, color=MUTED, linewidth=1.4, zorder=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(devices, [str(count) for count in devices])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(f"devices, {same}")
        axes.set_ylabel("efficiency, % of ideal")
        axes.set_title(name, loc="left", fontsize=FONT, color=INK)
        axes.set_ylim(0, max(105.0, axes.get_ylim()[1]))

    return line_charts.draw(lines, look, one, finish)
