"""Strip plots and line charts of the report, drawn from plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator

from ..statistics import descriptive
from ..tables.formatting import number
from .selection import short
from .svg import FONT, MUTED, SERIES, Parts, colour_number, legend_of, svg

WIDTH = 460  # drawing units: readable on a phone as on a wide page
#: Most characters of a label.
LETTERS = 50
ROW = 22
TOP = 6  # top margin of plots made of rows
#: Height of a label with its dots, offset of the dots, and height of a heading, in rows.
_HIGH, _DOTS, _HEADING = 1.95, 1.2, 1.15
#: Line charts: left and right margin, axes to legend, total height without legend, height of axes.
LEFT, RIGHT, BELOW, HIGH, _AXES = 84, 14, 52, 300, 232
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p", "*")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
P = TypeVar("P")
#: Matplotlib keyword arguments for a line's style, and for the ``gid`` of its part.
Style = Mapping[str, Any]


@dataclass(frozen=True)
class Plot:
    """A drawing with its texts.

    ``description``: alternative text. ``caption``: text below, with what was left out. ``axes``:
    values that everything in the drawing shares, for the page's filter."""

    title: str
    svg: Markup
    description: str
    caption: str
    axes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlotRow:
    """A row of a strip plot.

    Without ``values`` it is a gap, and ``note`` gives the reason; without a framework it is a
    heading. ``interval`` is drawn as a bar behind the dots. ``axes``: values for the page's filter.
    """

    label: str
    framework: str = ""
    values: Sequence[float] = ()
    note: str = ""
    interval: tuple[float, float] | None = None
    axes: Mapping[str, str] = field(default_factory=dict)

    @property
    def tooltip(self) -> str:
        """Tooltip of the row."""
        if not self.values:
            return f"{self.label}: {self.note}"
        middle = number(descriptive.median(self.values)) + interval_text(self.interval)
        several = f"; repeats {', '.join(map(number, self.values))}" if len(self.values) > 1 else ""
        return f"{self.label}: {middle}{several}"


@dataclass(frozen=True)
class Look:
    """Colour and marker of each framework.

    Both are the same in every plot of a report, the colour also in every report."""

    frameworks: Sequence[str]

    def colour(self, framework: str) -> str:
        return SERIES[colour_number(framework)]

    def marker(self, framework: str) -> str:
        """Return the framework's marker, distinct within the report while markers last."""
        return MARKERS[self.frameworks.index(framework) % len(MARKERS)]


def number_ticks(axis: Axis, at: Locator, text: Callable[[float], str] = "{:g}".format) -> None:
    """Label an axis with numbers in place of powers."""
    axis.set_major_locator(at)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def interval_text(ends: tuple[float, float] | None) -> str:
    """Return an interval as the end of a tooltip; "" for None."""
    return "; 95 % interval {} to {}".format(*map(number, ends)) if ends else ""


def strips(
    rows: Sequence[PlotRow], look: Look, axis: str, reference: float | None = None
) -> Markup:
    """Return a strip plot as SVG: dots, a tick at the median, and the median at the right.

    ``reference``: value of a vertical line, for ratios. Labels are above the dots."""
    values = [value for row in rows for value in (*row.values, *(row.interval or ()))]
    logarithmic = reference is None and bool(values) and max(values) > 40 * min(values) > 0
    largest = max(map(abs, values), default=0.0) or 1.0
    decimals = max(0, 3 - math.floor(math.log10(largest)))  # four digits of the largest value
    margin = 20
    places, total = _places(rows)
    height = ROW * total + 46
    parts = Parts()
    names = _part_names(rows, parts)

    def draw(figure: Figure) -> None:
        axes = figure.add_axes(
            (margin / WIDTH, 40 / height, (WIDTH - 2 * margin) / WIDTH, ROW * total / height)
        )
        axes.set_ylim(total, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        _x_axis(axes, values, logarithmic, reference)
        axes.set_xlabel(axis + (" (logarithmic axis)" if logarithmic else ""))
        if reference is not None:
            axes.axvline(reference, color=MUTED, linewidth=1.2)
        for row, (label, dots), name in zip(rows, places, names, strict=True):
            _dots(axes, dots, row, look, name)
            bold: dict[str, Any] = {} if row.framework else {"color": MUTED, "fontweight": "bold"}
            _write(axes, short(row.label, LETTERS), 0, label, -14, gid=name, ha="left", **bold)
            if row.values:
                middle = f"{descriptive.median(row.values):.{decimals}f}"
                _write(axes, middle, 1, label, 14, ha="right", gid=name)
            elif row.note:
                _write(axes, row.note, 0, dots, 8, color=MUTED, fontstyle="italic", gid=name)
            if name and row.framework:
                parts.row(name, TOP + ROW * (label - 0.5), WIDTH, ROW * _HIGH, row.tooltip)

    return svg(draw, WIDTH, height, parts)


def _part_names(rows: Sequence[PlotRow], parts: Parts) -> list[str | None]:
    """Return the part of each row. A heading is hidden with the last of its rows."""
    names = [parts.add(row.axes) if row.framework else None for row in rows]
    below: list[str] = []
    for at in reversed(range(len(rows))):
        if name := names[at]:
            below.append(name)
        else:
            names[at], below = Parts.together(below) if below else None, []
    return names


def _write(axes: Axes, text: str, side: int, position: float, offset: float, **style: Any) -> None:
    """Write at the left (0) or right (1) edge of the axes."""
    axes.annotate(
        text, (side, position), xycoords=axes.get_yaxis_transform(), va="center",
        textcoords="offset points", xytext=(offset, 0), **style,
    )  # fmt: skip


def _places(rows: Sequence[PlotRow]) -> tuple[list[tuple[float, float]], float]:
    """Return vertical positions of each row's label and dots, and the total, in rows."""
    places = []
    at = 0.0
    for row in rows:
        places.append((at + 0.5, at + _DOTS))
        at += _HIGH if row.framework else _HEADING
    return places, at


def _dots(axes: Axes, position: float, row: PlotRow, look: Look, name: str | None) -> None:
    """Draw the values of a row. ``name``: name of its part."""
    if not row.values:
        return
    colour, several = look.colour(row.framework), len(row.values) > 1
    if row.interval:
        axes.hlines([position], *row.interval, colors=colour, linewidth=7, alpha=0.3, gid=name)
    style: dict[str, Any] = {"linestyle": "none", "color": colour, "clip_on": False, "gid": name}
    axes.plot(
        row.values, [position] * len(row.values), marker=look.marker(row.framework),
        markersize=6.5, alpha=0.6 if several else 0.95, markeredgewidth=0, **style,
    )  # fmt: skip
    if several:
        axes.plot([descriptive.median(row.values)], [position], marker="|", markersize=15,
                  markeredgewidth=2.4, **style)  # fmt: skip


def _x_axis(
    axes: Axes, values: Sequence[float], logarithmic: bool, reference: float | None
) -> None:
    """Scale the axis: linear ones start at 0 or, with a ``reference``, enclose it and all values,
    so that differences of a few percent are visible."""
    if not values:
        axes.set_xticks([])
        axes.set_xlim(0, 1)
        axes.grid(visible=False)
    elif logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.3, max(values) * 1.3)
        number_ticks(axes.xaxis, LogLocator(subs=(1, 3), numticks=12))
    else:
        low, high = min(0.0, 1.04 * min(values)), max(0.0, 1.04 * max(values)) or 1.0
        if reference is not None:
            low, high = min(*values, reference), max(*values, reference)
            margin = max(0.06 * (high - low), 0.01)
            low, high = low - margin, high + margin
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))


# ---- line charts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChartLine(Generic[P]):
    """A case drawn as a line. ``axes``: values that the page's filter matches."""

    label: str
    framework: str
    points: Sequence[P]
    axes: Mapping[str, str] = field(default_factory=dict)


def line_chart(
    lines: Sequence[ChartLine[P]],
    look: Look,
    line_of: Callable[[Axes, ChartLine[P], Style, Parts], None],
    finish: Callable[[Axes], None],
) -> Markup:
    """Return a line chart as SVG.

    ``line_of`` draws a line and registers its values. ``finish`` scales and labels the axes. The
    legend lists lines that ``line_of`` labels, each in the part of its line."""
    legend = ROW * len(lines)
    height = HIGH + legend
    parts = Parts()

    def drawing(figure: Figure) -> None:
        across = (WIDTH - LEFT - RIGHT) / WIDTH
        axes = figure.add_axes((LEFT / WIDTH, (BELOW + legend) / height, across, _AXES / height))
        seen: Counter[str] = Counter()
        for line in lines:
            style = {
                "color": look.colour(line.framework),
                "marker": look.marker(line.framework),
                "markeredgewidth": 0,
                "linestyle": DASHES[seen[line.framework] % len(DASHES)],
                "gid": parts.add(line.axes),
            }
            seen[line.framework] += 1
            line_of(axes, line, style, parts)
        finish(axes)
        legend_of(
            figure, loc="lower left", bbox_to_anchor=(0.02, 0), fontsize=FONT - 1,
            handlelength=2.6, labelspacing=0.45,
        )  # fmt: skip

    return svg(drawing, WIDTH, height, parts)
