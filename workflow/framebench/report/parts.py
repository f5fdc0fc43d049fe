"""Parts of a drawing, one per case, for the page's filter and its tooltips.

Matplotlib's artists carry the name of their part as ``gid``, which becomes the attribute
``data-part``. Tooltips are attributes of invisible rectangles over the drawing."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes

#: Side of the rectangle around a point, in drawing units.
SIDE = 14.0


@dataclass(frozen=True)
class _Point:
    part: str
    axes: Axes
    place: tuple[float, float]
    text: str


@dataclass
class Parts:
    """Parts of one drawing, filled while it is drawn."""

    _axes: list[Mapping[str, str]] = field(default_factory=list)
    _rectangles: list[str] = field(default_factory=list)
    _points: list[_Point] = field(default_factory=list)

    def add(self, axes: Mapping[str, str]) -> str:
        """Add a part with the axes that a filter can match. Returns the ``gid`` of its artists."""
        self._axes.append(axes)
        return f"part-{len(self._axes) - 1}"

    @staticmethod
    def together(names: Iterable[str]) -> str:
        """Return the ``gid`` shared by several parts, which is hidden with the last of them."""
        numbers = sorted({int(name.removeprefix("part-")) for name in names})
        return f"part-{'-'.join(map(str, numbers))}"

    def row(self, part: str, top: float, width: float, height: float, text: str) -> None:
        """Add a tooltip ``text`` to a whole row, in drawing units from the upper edge."""
        self._rectangles.append(_rectangle(part, (0, top, width, height), f'data-tip="{_q(text)}"'))

    def point(self, part: str, axes: Axes, position: tuple[float, float], text: str) -> None:
        """Add a tooltip ``text`` around a point."""
        self._points.append(_Point(part, axes, position, text))

    def attribute(self) -> str:
        """Return the drawing's attribute with each part's value by axis, null if it has none."""
        names = list(dict.fromkeys(name for axes in self._axes for name in axes))
        values = {name: [axes.get(name) for axes in self._axes] for name in names}
        if not values:
            return ""
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        quoted = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")
        return f" data-parts='{quoted}'"

    def markup(self, height: float) -> str:
        """Return the tooltip rectangles of a drawing of this height.

        The axes must have their final limits."""
        points = []
        for point in self._points:
            x, y = point.axes.transData.transform(point.place)
            box = (x - SIDE / 2, height - y - SIDE / 2, SIDE, SIDE)
            points.append(_rectangle(point.part, box, f'data-tip="{_q(point.text)}"'))
        return "".join([*self._rectangles, *points])


def _rectangle(part: str, box: Sequence[float], text: str) -> str:
    x, y, width, height = (f"{value:.1f}".removesuffix(".0") for value in box)
    attribute = f' data-part="{part.removeprefix("part-")}"' if part else ""
    return (
        f'<rect{attribute} x="{x}" y="{y}" width="{width}" height="{height}" fill="none" '
        f'pointer-events="all" {text}/>'
    )


def _q(text: Any) -> str:
    return html.escape(str(text))
