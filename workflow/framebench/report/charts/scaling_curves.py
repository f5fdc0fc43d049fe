"""Speed-up and efficiency by number of devices, for weak or strong scaling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from ...cases.conditions import CONDITIONS
from ...cases.names import topology
from ...tables.declared.scaling import ScalingKind
from ...tables.formatting import number
from ..line_charts import ChartLine
from ..parts import Parts
from ..plots import DASHES, ROW, WIDTH, Look, Plot
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
from ..svg import FONT, INK, MUTED, legend_of, svg

MAX_PANELS = 6
MAX_LINES = 10


@dataclass(frozen=True)
class ScalingPoint:
    """Speed-up over one device. ``interval``: None with too few repeats."""

    devices: int
    nodes: int
    speedup: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class ScalingLine(ChartLine[ScalingPoint]):
    """Points of one setting, by number of devices, then nodes."""

    @property
    def on_fewest_nodes(self) -> list[ScalingPoint]:
        """One point per number of devices, on the fewest nodes, joined by the line."""
        return [next(same) for _, same in groupby(self.points, lambda point: point.devices)]

    @property
    def on_more_nodes(self) -> list[ScalingPoint]:
        """Points with as many devices as another point but on more nodes."""
        return [point for point in self.points if point not in self.on_fewest_nodes]


def panels(table: pd.DataFrame, look: Look, kind: ScalingKind) -> list[Plot]:
    """Return a plot per model, mode and precision.

    Each setting with a speed-up on several numbers of devices is a line. ``table``: of this kind of
    scaling."""
    found: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Any]]] = defaultdict(dict)
    without: Counter[tuple[str, str, str]] = Counter()
    for row in rows_of(table):
        if not is_known(row.speedup):
            without[row.model, row.mode, row.precision] += 1
            continue
        line = (row.framework, row.framework_version, row.source, row.compiler)
        # Text, because missing values have no order.
        conditions = (str(getattr(row, name)) for name in CONDITIONS)
        lines = found[row.model, row.mode, row.precision]
        lines.setdefault((*line, *conditions, getattr(row, kind.batch)), []).append(row)
    full = {
        panel: {key: rows for key, rows in lines.items() if len({r.devices for r in rows}) > 1}
        for panel, lines in found.items()
    }
    full = {panel: lines for panel, lines in full.items() if lines}
    drawn = []
    for panel in sorted(full, key=training_first)[:MAX_PANELS]:
        lines = full[panel]
        label = labels([rows[0]._asdict() for rows in lines.values()], kind.batch)
        chosen = spread(sorted(lines), lambda key: key[0], MAX_LINES)
        made = [
            ScalingLine(
                label(lines[key][0]._asdict()),
                key[0],
                _points(lines[key]),
                axes_of(lines[key][0]._asdict(), without=["devices"]),
            )
            for key in sorted(chosen)
        ]
        drawn.append(
            Plot(
                title=", ".join(panel),
                svg=draw(made, look, kind),
                description=f"{kind.name} of {', '.join(panel)}: speed-up against one device and "
                f"efficiency of {len(made)} settings, with {kind.same}. The numbers stand in the "
                "table below.",
                caption=f"{kind.title}. Grey is the ideal, a bar the 95 % interval; a point "
                "without one has none, for too few repeats. "
                + "Hollow: as many devices on more nodes. "
                * any(line.on_more_nodes for line in made)
                + "A slow single device makes a speed-up look good: read it "
                "beside the throughput. "
                + left_out(len(made), len(lines), "settings with more than one device count")
                + without_ratio(without[panel])
                + panels_left_out(len(full), MAX_PANELS, "below"),
            )
        )
    return drawn


def _points(rows: Sequence[Any]) -> list[ScalingPoint]:
    points = [
        ScalingPoint(
            int(row.devices),
            int(row.nodes),
            float(row.speedup),
            (float(row.speedup_ci_low), float(row.speedup_ci_high))
            if is_known(row.speedup_ci_low)
            else None,
        )
        for row in rows
    ]
    return sorted(points, key=lambda point: (point.devices, point.nodes))


def draw(lines: Sequence[ScalingLine], look: Look, kind: ScalingKind) -> Markup:
    """Return speed-up (left) and efficiency (right) by devices as SVG, each with the ideal."""
    devices = sorted({point.devices for line in lines for point in line.points} | {1})
    legend = ROW * ((len(lines) + 2) // 2)
    height = 300 + legend
    parts = Parts()

    def drawing(figure: Figure) -> None:
        size = (0.4, 226 / height)
        speed = figure.add_axes((56 / WIDTH, (46 + legend) / height, *size))
        efficiency = figure.add_axes((0.58, (46 + legend) / height, *size))
        ideal = speed.plot(devices, devices, color=MUTED, linewidth=1.4, label="ideal")
        efficiency.axhline(100, color=MUTED, linewidth=1.4)
        handles: list[Any] = list(ideal)
        seen: dict[str, int] = {}
        for line in lines:
            dash = DASHES[seen.setdefault(line.framework, 0) % len(DASHES)]
            seen[line.framework] += 1
            name = parts.add(line.axes)
            style: dict[str, Any] = {
                "color": look.colour(line.framework), "marker": look.marker(line.framework),
                "linestyle": dash, "markersize": 6, "markeredgewidth": 0, "gid": name,
            }  # fmt: skip
            hollow = {**style, "linestyle": "", "markerfacecolor": "none", "markeredgewidth": 1.4}
            joined = _draw(line.on_fewest_nodes, speed, efficiency, style)
            _draw(line.on_more_nodes, speed, efficiency, hollow)
            joined.set_label(line.label)
            handles.append(joined)
            for point in line.points:
                _bar(speed, point, 1.0, style)
                _bar(efficiency, point, 100.0 / point.devices, style)
                part_of_ideal = 100 * point.speedup / point.devices
                said = f"{line.label}, {topology(point.nodes, point.devices // point.nodes)}: "
                said += f"{number(point.speedup)}, {part_of_ideal:.1f} % of ideal"
                if point.interval:
                    said += "; 95 % interval {} to {}".format(*map(number, point.interval))
                parts.point(name, speed, (point.devices, point.speedup), said)
                parts.point(name, efficiency, (point.devices, part_of_ideal), said)
        for axes, title in ((speed, "speed-up"), (efficiency, "efficiency, % of ideal")):
            axes.set_xscale("log", base=2)
            axes.set_xticks(devices, [str(count) for count in devices])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel(f"devices, {kind.same}")
            axes.set_title(f"{kind.name}: {title}", loc="left", fontsize=FONT, color=INK)
        speed.set_yscale("log", base=2)
        speed.set_yticks(devices, [str(count) for count in devices])
        speed.yaxis.set_minor_formatter(NullFormatter())
        efficiency.set_ylim(0, max(105.0, efficiency.get_ylim()[1]))
        legend_of(
            figure,
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.02, 0),
            ncols=2,
            fontsize=FONT - 1,
            handlelength=2.6,
            columnspacing=2,
            labelspacing=0.45,
        )

    return svg(drawing, WIDTH, height, parts)


def _draw(
    points: Sequence[ScalingPoint], speed: Axes, efficiency: Axes, style: dict[str, Any]
) -> Line2D:
    """Draw points in both axes; return the line in ``speed``."""
    counts = [point.devices for point in points]
    (drawn,) = speed.plot(counts, [point.speedup for point in points], **style)
    efficiency.plot(counts, [100 * point.speedup / point.devices for point in points], **style)
    return drawn


def _bar(axes: Axes, point: ScalingPoint, factor: float, style: Mapping[str, Any]) -> None:
    """Draw the 95 % interval as an error bar."""
    if point.interval is None or point.interval[0] == point.interval[1]:
        return  # one device compared with itself
    ends = [factor * end for end in point.interval]
    axes.plot([point.devices] * 2, ends, color=style["color"], linewidth=1.6, marker="_",
              markersize=9, markeredgewidth=1.6, alpha=0.7, gid=style["gid"])  # fmt: skip
