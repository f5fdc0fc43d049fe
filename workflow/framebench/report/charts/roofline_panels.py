"""Roofline plots: FLOP/s over FLOP per byte, on logarithmic axes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from ..parts import Parts
from ..plots import WIDTH, Look, Plot
from ..selection import axes_of, is_known, left_out, panels_left_out, rows_of, spread
from ..svg import FONT, INK, MUTED, legend_of, svg

MAX_PANELS = 6
#: Most settings (model, mode, batch) of a panel; each has its own intensity.
MAX_SETTINGS = 12
#: Height of a legend line in drawing units.
_LINE = 18
#: Drawing units: left and right margin of the axes.
_LEFT, _RIGHT = 72, 16


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


@dataclass(frozen=True)
class RooflineSetting:
    """Rows of one setting, which share an intensity in FLOP per byte."""

    name: str
    intensity: float
    rows: Sequence[Any]


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
        every = _settings_of(rows)
        chosen = spread(every, lambda entry: entry.name.partition(",")[0], MAX_SETTINGS)
        chosen.sort(key=lambda entry: entry.intensity)
        drawn.append(
            Plot(
                title=f"Roofline: {', '.join(labels)}",
                svg=_draw(chosen, roofs, look),
                description=f"Operations a second over operations for each byte of "
                f"{sum(len(entry.rows) for entry in chosen)} cases, below the peak of "
                f"{number(roofs.peak)} TFLOP/s and the bandwidth of {number(roofs.bandwidth)} GB/s "
                "of a device. The numbers stand in the table below.",
                caption="Filled is training, hollow inference; larger with a compiler. The roofs "
                "are measured. A number stands above all frameworks at one setting: they compute "
                "the same, so that the higher is the faster. Bytes are the fewest that a step has "
                "to move: a point may belong further to the left, never to the right. "
                + left_out(len(chosen), len(every), "settings")
                + panels_left_out(len(found), MAX_PANELS, "below"),
                axes={"precision": rows[0].precision, "devices": topology_of(rows[0])},
            )
        )
    return drawn


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _settings_of(rows: Sequence[Any]) -> list[RooflineSetting]:
    """Return settings with their rows, by rising intensity."""
    found: dict[tuple[str, float], list[Any]] = defaultdict(list)
    for row in rows:
        parts = [row.model, row.mode, f"batch {row.batch_per_device}"]
        for axis in (case_axes.named("sequence_length"), *case_axes.optional()):
            if axis.form == case_axes.COUNT:
                parts.append(formatting.condition_label(axis.name, _whole(getattr(row, axis.name))))
        found[", ".join(filter(None, parts)), row.intensity].append(row)
    settings = [RooflineSetting(name, at, some) for (name, at), some in found.items()]
    return sorted(settings, key=lambda setting: (setting.intensity, setting.name))


def _draw(settings: Sequence[RooflineSetting], roofs: RoofLines, look: Look) -> Markup:
    """Return a roofline plot as SVG. ``settings``: by rising intensity."""
    rows = [row for setting in settings for row in setting.rows]
    frameworks = list(dict.fromkeys(row.framework for row in rows))
    legend = _LINE * (len(settings) + len(frameworks) + 1) + 16
    height = 330 + legend
    parts = Parts()
    names = {id(row): parts.add(axes_of(row._asdict())) for row in rows}

    def together(some: Iterable[Any]) -> str:
        """Return the ``gid`` of what belongs to several rows."""
        return Parts.together(names[id(row)] for row in some)

    def drawing(figure: Figure) -> None:
        across = (WIDTH - _LEFT - _RIGHT) / WIDTH
        axes = figure.add_axes((_LEFT / WIDTH, (54 + legend) / height, across, 256 / height))
        known = [*(setting.intensity for setting in settings), roofs.ridge]
        ends = (min(known) / 2.5, max(known) * 2.5)
        at = [ends[0], roofs.ridge, ends[1]]
        axes.plot(at, [roofs.at(x) for x in at], color=INK, linewidth=2)
        for place, setting in enumerate(settings, 1):
            _setting(axes, place, setting, roofs, together(setting.rows))
            for row in setting.rows:
                has_compiler = row.compiler not in ("", "none")
                colour = look.colour(row.framework)
                axes.plot(
                    [row.intensity], [row.tflops_per_device], linestyle="none", color=colour,
                    marker=look.marker(row.framework), markersize=9 if has_compiler else 6,
                    markeredgewidth=1.5, alpha=0.85, gid=names[id(row)],
                    markerfacecolor=colour if row.mode == "train" else "none",
                )  # fmt: skip
                name = row.framework + (f" + {row.compiler}" if has_compiler else "")
                parts.point(
                    names[id(row)], axes, (row.intensity, row.tflops_per_device),
                    f"{name}, {setting.name}: {number(row.tflops_per_device)} TFLOP/s, "
                    f"{100 * row.reached:.1f} % of what the roofs allow",
                )  # fmt: skip
        axes.set_xlim(ends)
        _scale(axes, [row.tflops_per_device for row in rows], roofs.peak)
        handles = [
            Line2D([], [], color=INK, label=f"{roofs.bandwidth:.3g} GB/s, {roofs.peak:.3g} TFLOP/s")
        ]
        handles += [
            Line2D([], [], linestyle="none", color=look.colour(name), marker=look.marker(name),
                   markersize=6, markeredgewidth=0, label=name,
                   gid=together(row for row in rows if row.framework == name))
            for name in frameworks
        ]  # fmt: skip
        style: dict[str, Any] = {"loc": "lower left", "fontsize": FONT - 1, "labelspacing": 0.45}
        below = _LINE * len(settings) / height
        legend_of(figure, handles=handles, bbox_to_anchor=(0.02, below), handlelength=1.6, **style)
        named = [
            Line2D([], [], linestyle="none", label=f"{place}: {setting.name}",
                   gid=together(setting.rows))
            for place, setting in enumerate(settings, 1)
        ]  # fmt: skip
        legend_of(figure, handles=named, bbox_to_anchor=(0.02, 0), handlelength=0,
                  handletextpad=0, **style)  # fmt: skip

    return svg(drawing, WIDTH, height, parts)


def _setting(axes: Axes, place: int, setting: RooflineSetting, roofs: RoofLines, part: str) -> None:
    """Draw a dotted line from a setting's lowest point to the roofs, and its number."""
    attained = [row.tflops_per_device for row in setting.rows]
    axes.plot(
        [setting.intensity] * 2, [min(attained), roofs.at(setting.intensity)], color=MUTED,
        linewidth=1, linestyle=(0, (1, 2)), gid=part,
    )  # fmt: skip
    axes.annotate(
        str(place), (setting.intensity, max(attained)), ha="center", xytext=(0, 8),
        textcoords="offset points", fontsize=FONT - 1, color=MUTED, gid=part,
    )  # fmt: skip


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
