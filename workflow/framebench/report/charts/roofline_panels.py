"""Roofline plots: FLOP/s over FLOP per byte, on logarithmic axes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from core import axes as case_axes
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ...cases.names import topology_of
from ...tables import formatting
from ...tables.formatting import number
from ..line_charts import BELOW, HIGH, LEFT, RIGHT
from ..parts import Parts
from ..plots import ROW, WIDTH, Look, Plot
from ..selection import axes_of, is_known, left_out, panels_left_out, rows_of, spread
from ..svg import FONT, INK, legend_of, svg

MAX_PANELS = 6
#: Most points of a panel.
MAX_POINTS = 80
#: Height of the axes in drawing units.
_AXES = 256


class RoofLines(NamedTuple):
    """Roofs of one device: ``peak`` in TFLOP/s, ``bandwidth`` in GB/s."""

    peak: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """Intensity in FLOP per byte from which on the peak is the lower roof."""
        return 1000 * self.peak / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the TFLOP/s that the roofs allow at this intensity."""
        return min(self.peak, intensity * self.bandwidth / 1000)


def panels(table: pd.DataFrame, look: Look) -> list[Plot]:
    """Return a plot per precision and number of devices, which have their own roofs."""
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows_of(table):
        if is_known(row.reached):
            roofs = RoofLines(row.compute_roof_tflops, row.memory_roof_gbytes_per_second)
            where = formatting.condition_label("machine", row.machine)
            cores = formatting.condition_label("cores_per_device", _whole(row.cores_per_device))
            parts = (row.precision, topology_of(row), cores, where)
            found[(*filter(None, parts), roofs)].append(row)
    drawn = []
    for (*labels, roofs), rows in list(found.items())[:MAX_PANELS]:
        chosen = spread(rows, lambda row: (row.model, row.framework), MAX_POINTS)
        drawn.append(
            Plot(
                title=f"Roofline: {', '.join(labels)}",
                svg=_draw(chosen, roofs, look),
                description=f"Operations a second over operations for each byte of {len(chosen)} "
                f"cases, below the peak of {number(roofs.peak)} TFLOP/s and the bandwidth of "
                f"{number(roofs.bandwidth)} GB/s of a device. The numbers are in the table.",
                caption="Filled is training, hollow inference; larger with a compiler. The roofs "
                "are measured. Frameworks at one setting stand above each other: they compute the "
                "same, so that the higher is the faster. Bytes are the fewest that a step has to "
                "move: a point may belong further to the left, never to the right. "
                + left_out(len(chosen), len(rows), "cases")
                + panels_left_out(len(found), MAX_PANELS, "below"),
                axes={"precision": rows[0].precision, "devices": topology_of(rows[0])},
            )
        )
    return drawn


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _setting_of(row: Any) -> str:
    """Return model, mode and sizes of a row, which share an intensity."""
    parts = [row.model, row.mode, f"batch {row.batch_per_device}"]
    for axis in (case_axes.BY_NAME["sequence_length"], *case_axes.OPTIONAL):
        if axis.form == case_axes.COUNT:
            parts.append(formatting.condition_label(axis.name, _whole(getattr(row, axis.name))))
    return ", ".join(filter(None, parts))


def _draw(rows: Sequence[Any], roofs: RoofLines, look: Look) -> Markup:
    """Return a roofline plot as SVG."""
    frameworks = list(dict.fromkeys(row.framework for row in rows))
    legend = ROW * (len(frameworks) + 1)
    height = HIGH + legend
    parts = Parts()
    names = [parts.add(axes_of(row._asdict())) for row in rows]

    def drawing(figure: Figure) -> None:
        across = (WIDTH - LEFT - RIGHT) / WIDTH
        axes = figure.add_axes((LEFT / WIDTH, (BELOW + legend) / height, across, _AXES / height))
        known = [*(row.intensity for row in rows), roofs.ridge]
        at = [min(known) / 2.5, roofs.ridge, max(known) * 2.5]
        axes.plot(at, [roofs.at(x) for x in at], color=INK, linewidth=2)
        for row, name in zip(rows, names, strict=True):
            has_compiler = row.compiler not in ("", "none")
            colour = look.colour(row.framework)
            axes.plot(
                [row.intensity], [row.tflops_per_device], linestyle="none", color=colour,
                marker=look.marker(row.framework), markersize=9 if has_compiler else 6,
                markeredgewidth=1.5, alpha=0.85, gid=name,
                markerfacecolor=colour if row.mode == "train" else "none",
            )  # fmt: skip
            label = row.framework + (f" + {row.compiler}" if has_compiler else "")
            parts.point(
                name, axes, (row.intensity, row.tflops_per_device),
                f"{label}, {_setting_of(row)}: {number(row.tflops_per_device)} TFLOP/s, "
                f"{100 * row.reached:.1f} % of what the roofs allow",
            )  # fmt: skip
        axes.set_xlim(at[0], at[-1])
        _scale(axes, [row.tflops_per_device for row in rows], roofs.peak)
        handles = [
            Line2D([], [], color=INK, label=f"{roofs.bandwidth:.3g} GB/s, {roofs.peak:.3g} TFLOP/s")
        ]
        for framework in frameworks:
            own = (n for row, n in zip(rows, names, strict=True) if row.framework == framework)
            handles.append(
                Line2D([], [], linestyle="none", color=look.colour(framework), markersize=6,
                       marker=look.marker(framework), markeredgewidth=0, label=framework,
                       gid=Parts.together(own))
            )  # fmt: skip
        legend_of(figure, handles=handles, loc="lower left", bbox_to_anchor=(0.02, 0),
                  fontsize=FONT - 1, handlelength=1.6, labelspacing=0.45)  # fmt: skip

    return svg(drawing, WIDTH, height, parts)


def _scale(axes: Axes, attained: Sequence[float], peak: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1,), numticks=12))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(min(attained) / 2, 1.6 * max(*attained, peak))
    axes.set_xlabel("FLOP for each byte, at most (logarithmic axes)")
    axes.set_ylabel("TFLOP/s of a device")
