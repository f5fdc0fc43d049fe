"""Roofline plots: FLOP/s over FLOP per byte, on logarithmic axes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from core import axes
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
#: Settings within this ratio of intensities share the position of their numbers.
_NEAR = 1.05


@dataclass(frozen=True)
class RoofLines:
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
class RooflinePoint:
    """A case below the roofs.

    ``attained``: TFLOP/s of one device. ``reached``: fraction of the bound. ``axes``: values for
    the page's filter."""

    framework: str
    compiler: str
    intensity: float
    attained: float
    trains: bool
    reached: float
    axes: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        compiler = f" + {self.compiler}" if self.compiler not in ("", "none") else ""
        return self.framework + compiler


@dataclass(frozen=True)
class RooflineSetting:
    """Points of one setting, which share an intensity in FLOP per byte."""

    name: str
    intensity: float
    points: Sequence[RooflinePoint]


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
        every = settings_of(rows)
        chosen = spread(every, lambda entry: entry.name.partition(",")[0], MAX_SETTINGS)
        chosen.sort(key=lambda entry: entry.intensity)
        drawn.append(
            Plot(
                title=f"Roofline: {', '.join(labels)}",
                svg=draw(chosen, roofs, look),
                description=f"Operations a second over operations for each byte of "
                f"{sum(len(entry.points) for entry in chosen)} cases, below the peak of "
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


def settings_of(rows: Sequence[Any]) -> list[RooflineSetting]:
    """Return settings with their points, by rising intensity."""
    points: dict[tuple[str, float], list[RooflinePoint]] = defaultdict(list)
    for row in rows:
        parts = [row.model, row.mode, f"batch {row.batch_per_device}"]
        for axis in (axes.named("sequence_length"), *axes.optional()):
            if axis.form == axes.COUNT:
                parts.append(formatting.condition_label(axis.name, _whole(getattr(row, axis.name))))
        point = RooflinePoint(
            row.framework, row.compiler, row.intensity, row.tflops_per_device, row.mode == "train",
            row.reached, axes_of(row._asdict()),
        )  # fmt: skip
        points[", ".join(filter(None, parts)), row.intensity].append(point)
    settings = [RooflineSetting(name, at, some) for (name, at), some in points.items()]
    return sorted(settings, key=lambda setting: (setting.intensity, setting.name))


def draw(settings: Sequence[RooflineSetting], roofs: RoofLines, look: Look) -> Markup:
    """Return a roofline plot as SVG. ``settings``: by rising intensity."""
    points = [point for setting in settings for point in setting.points]
    frameworks = list(dict.fromkeys(point.framework for point in points))
    legend = _LINE * (len(settings) + len(frameworks) + 1) + 16
    height = 330 + legend
    parts = Parts()
    names = {id(point): parts.add(point.axes) for point in points}

    def together(some: Iterable[RooflinePoint]) -> str:
        return Parts.together(names[id(point)] for point in some)

    def drawing(figure: Figure) -> None:
        left, right = 72, 16
        axes = figure.add_axes(
            (left / WIDTH, (54 + legend) / height, (WIDTH - left - right) / WIDTH, 256 / height)
        )
        _roofs(axes, settings, roofs, together)
        for point in points:
            colour = look.colour(point.framework)
            axes.plot(
                [point.intensity], [point.attained], linestyle="none", color=colour,
                marker=look.marker(point.framework),
                markersize=6 if point.compiler in ("", "none") else 9, markeredgewidth=1.5,
                markerfacecolor=colour if point.trains else "none", alpha=0.85,
                gid=names[id(point)],
            )  # fmt: skip
        for setting in settings:
            for point in setting.points:
                said = (
                    f"{point.name}, {setting.name}: {number(point.attained)} TFLOP/s, "
                    f"{100 * point.reached:.1f} % of what the roofs allow"
                )
                place = (point.intensity, point.attained)
                parts.point(names[id(point)], axes, place, said)
        _numbers(axes, settings, together)
        _scale(axes, [point.attained for point in points], roofs.peak)
        handles = [
            Line2D([], [], color=INK, label=f"{roofs.bandwidth:.3g} GB/s, {roofs.peak:.3g} TFLOP/s")
        ]
        handles += [
            Line2D([], [], linestyle="none", color=look.colour(name), marker=look.marker(name),
                   markersize=6, markeredgewidth=0, label=name,
                   gid=together(point for point in points if point.framework == name))
            for name in frameworks
        ]  # fmt: skip
        style: dict[str, Any] = {
            "loc": "lower left", "fontsize": FONT - 1, "columnspacing": 2,
            "labelspacing": 0.45,
        }  # fmt: skip
        below = _LINE * len(settings) / height
        legend_of(figure, handles=handles, bbox_to_anchor=(0.02, below), handlelength=1.6, **style)
        named = [
            Line2D([], [], linestyle="none", label=f"{at}: {setting.name}",
                   gid=together(setting.points))
            for at, setting in enumerate(settings, 1)
        ]  # fmt: skip
        style |= {"bbox_to_anchor": (0.02, 0), "handlelength": 0, "handletextpad": 0}
        legend_of(figure, handles=named, **style)

    return svg(drawing, WIDTH, height, parts)


#: Function that returns the shared ``gid`` of several points.
Together = Callable[[Iterable[RooflinePoint]], str]


def _roofs(
    axes: Axes, settings: Sequence[RooflineSetting], roofs: RoofLines, together: Together
) -> None:
    """Draw the roofs, and a dotted line from each setting's lowest point up to them."""
    known = [setting.intensity for setting in settings]
    first, last = min(*known, roofs.ridge) / 2.5, max(*known, roofs.ridge) * 2.5
    at = [first, roofs.ridge, last]
    axes.plot(at, [roofs.at(x) for x in at], color=INK, linewidth=2)
    for setting in settings:
        lowest = min(point.attained for point in setting.points)
        ends = [lowest, roofs.at(setting.intensity)]
        style: Any = {"color": MUTED, "linewidth": 1, "linestyle": (0, (1, 2))}
        axes.plot([setting.intensity] * 2, ends, gid=together(setting.points), **style)
    axes.set_xlim(first, last)


def _numbers(axes: Axes, settings: Sequence[RooflineSetting], together: Together) -> None:
    """Write each setting's number above its points; close settings share a position."""
    places: list[list[tuple[int, RooflineSetting]]] = []
    for numbered in enumerate(settings, 1):
        before = places[-1][-1][1].intensity if places else 0.0
        if numbered[1].intensity <= _NEAR * before:
            places[-1].append(numbered)
        else:
            places.append([numbered])
    for some in places:
        top = max(point.attained for _, setting in some for point in setting.points)
        axes.annotate(
            ", ".join(str(at) for at, _ in some), (some[0][1].intensity, top), ha="center",
            xytext=(0, 8), textcoords="offset points", fontsize=FONT - 1, color=MUTED,
            gid=together(point for _, setting in some for point in setting.points),
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
