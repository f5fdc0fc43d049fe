"""Line charts of the report: position of axes and legend, and line styles by framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .parts import Parts
from .plots import DASHES, ROW, WIDTH, Look
from .svg import FONT, legend_of, svg

#: Drawing units: left and right margin, axes to legend, total height without legend.
LEFT, RIGHT, BELOW, HIGH = 84, 14, 52, 300
#: Height of the axes.
_AXES = 232


P = TypeVar("P")


@dataclass(frozen=True)
class ChartLine(Generic[P]):
    """A case drawn as a line. ``axes``: values that the page's filter matches."""

    label: str
    framework: str
    points: Sequence[P]
    axes: Mapping[str, str] = field(default_factory=dict)


#: Matplotlib keyword arguments for a line's style, and for the ``gid`` of its part.
Style = Mapping[str, Any]


def draw(
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
