"""Lines over one axis, drawn for the report: where axes and legend stand, and how the lines of one
framework are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .parts import Parts
from .plots import DASHES, ROW, WIDTH, Look
from .svg import FONT, legend_of, svg

#: In drawing units: beside the axes, below them down to the legend, and of all but the legend.
LEFT, RIGHT, BELOW, HIGH = 84, 14, 52, 300
#: Of the axes.
_AXES = 232


class ChartLine(Protocol):
    """What a case is drawn as. ``axes``: what a reader of the page may ask of it."""

    @property
    def label(self) -> str: ...

    @property
    def framework(self) -> str: ...

    @property
    def axes(self) -> Mapping[str, str]: ...


L = TypeVar("L", bound=ChartLine)
#: How a line looks, and the ``gid`` of its part: words for Matplotlib.
Style = Mapping[str, Any]


def draw(
    lines: Sequence[L],
    look: Look,
    width: int,
    line_of: Callable[[Axes, L, Style, Parts], None],
    finish: Callable[[Axes], None],
) -> Markup:
    """``line_of`` draws a line and says its values; ``finish`` scales and names the axes. The
    legend has what ``line_of`` labels, each entry in the part of its line."""
    columns = 2 if width == WIDTH else 1
    legend = ROW * -(-len(lines) // columns)
    height = HIGH + legend
    parts = Parts()

    def drawing(figure: Figure) -> None:
        across = (width - LEFT - RIGHT) / width
        axes = figure.add_axes((LEFT / width, (BELOW + legend) / height, across, _AXES / height))
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
            figure, loc="lower left", bbox_to_anchor=(0.02, 0), ncols=columns, fontsize=FONT - 1,
            handlelength=2.6, columnspacing=2, labelspacing=0.45,
        )  # fmt: skip

    return svg(drawing, width, height, parts)
