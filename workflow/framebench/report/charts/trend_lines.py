"""History of a figure over result sets, with intervals and change points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...tables.formatting import number
from ..parts import Parts
from ..plots import WIDTH, Look
from ..selection import short
from ..svg import ALARM, FONT, MUTED, svg

HEIGHT = 220
#: Drawing units: width of the axis, of a character, and of the gap between labels.
AXIS, CHARACTER, GAP = WIDTH - 84, 7.4, 18


@dataclass(frozen=True)
class Trend:
    """Values of a figure by result set.

    ``values``: None if a set has no figure. ``unit``: label of the axis. ``changes``: positions
    at which a new level begins."""

    framework: str
    unit: str
    labels: Sequence[str]
    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None]
    changes: Sequence[int]


def draw(trend: Trend, look: Look) -> Markup:
    """Return a trend as SVG, with result sets at equal distances in their order."""
    places = [n for n, value in enumerate(trend.values) if value is not None]
    colour = look.colour(trend.framework) if trend.framework else MUTED
    parts = Parts()

    def drawing(figure: Figure) -> None:
        axes = figure.add_axes((70 / WIDTH, 40 / HEIGHT, 1 - 84 / WIDTH, 1 - 56 / HEIGHT))
        for position in places:
            if both := trend.intervals[position]:
                axes.plot([position] * 2, both, color=colour, linewidth=1.4, alpha=0.5)
        present = [value for value in trend.values if value is not None]
        axes.plot(places, present, color=colour, linestyle="", marker="o", markersize=4.5)
        for position, value in zip(places, present, strict=True):
            said = f"{trend.labels[position]}: {number(value)}"
            if both := trend.intervals[position]:
                said += "; 95 % interval {} to {}".format(*map(number, both))
            parts.point("", axes, (position, value), said)
        for position in trend.changes:
            axes.axvline(position - 0.5, color=ALARM, linewidth=1.4, linestyle=(0, (4, 3)))
        labels = [short(label) for label in trend.labels]
        room = max(1, int(AXIS / (CHARACTER * max(map(len, labels)) + GAP)))
        shown = range(0, len(labels), math.ceil(len(labels) / room))
        axes.set_xticks(list(shown), [labels[n] for n in shown])
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylabel(trend.unit, fontsize=FONT - 1)

    return svg(drawing, WIDTH, HEIGHT, parts)
