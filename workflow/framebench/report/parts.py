"""The parts of a drawing, each of one case: the page's filter hides them, and says the values of
what is under the pointer.

Artists of Matplotlib get the name of their part as ``gid``, which becomes the attribute
``data-part``. What the pointer is told stands in rectangles that nobody sees, over the drawing.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.transforms import Transform

#: Of the rectangle around a point, in drawing units.
SIDE = 14.0


@dataclass(frozen=True)
class _Point:
    part: str
    axes: Axes
    place: tuple[float, float]
    transform: Transform
    text: str


@dataclass
class Parts:
    """Of one drawing, filled while it is drawn."""

    _axes: list[Mapping[str, str]] = field(default_factory=list)
    _rectangles: list[str] = field(default_factory=list)
    _points: list[_Point] = field(default_factory=list)

    def add(self, axes: Mapping[str, str]) -> str:
        """A part, and what a filter may ask of it. Returns the ``gid`` of its artists."""
        self._axes.append(axes)
        return f"part-{len(self._axes) - 1}"

    @staticmethod
    def together(names: Iterable[str]) -> str:
        """The ``gid`` of what several parts have in common: it goes with the last of them."""
        numbers = sorted({int(name.removeprefix("part-")) for name in names})
        return f"part-{'-'.join(map(str, numbers))}"

    def row(self, part: str, top: float, width: float, height: float, text: str) -> None:
        """All of a row of the drawing says ``text``; in drawing units from the upper edge."""
        self._rectangles.append(_rectangle(part, (0, top, width, height), f'data-tip="{_q(text)}"'))

    def point(
        self, part: str, axes: Axes, place: tuple[float, float], text: str,
        transform: Transform | None = None,
    ) -> None:  # fmt: skip
        """What is around a point says ``text``. ``transform``: by default that of the data."""
        self._points.append(_Point(part, axes, place, transform or axes.transData, text))

    def steps(
        self, box: Sequence[float], first: int, values: Sequence[str], unit: str, ahead: int = 0
    ) -> None:
        """The values at equal distances in a box (left, top, width, height); ``first``: the number
        of the first of them; ``ahead``: the last step, from 1 on, that had the next under way."""
        words = f'data-first="{first}" data-unit="{_q(unit)}" data-values="{",".join(values)}"'
        words += f' data-ahead="{ahead}"' if ahead else ""
        self._rectangles.append(_rectangle("", box, words))

    def attribute(self) -> str:
        """Of the drawing: by axis the value of each part, null where it has none."""
        names = list(dict.fromkeys(name for axes in self._axes for name in axes))
        values = {name: [axes.get(name) for axes in self._axes] for name in names}
        if not values:
            return ""
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        quoted = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")
        return f" data-parts='{quoted}'"

    def markup(self, height: float) -> str:
        """What stands over a drawing of this height, once all its axes have their limits."""
        points = []
        for one in self._points:
            x, y = one.transform.transform(one.place)
            box = (x - SIDE / 2, height - y - SIDE / 2, SIDE, SIDE)
            points.append(_rectangle(one.part, box, f'data-tip="{_q(one.text)}"'))
        return "".join([*self._rectangles, *points])


def _rectangle(part: str, box: Sequence[float], words: str) -> str:
    x, y, width, height = (f"{value:.1f}".removesuffix(".0") for value in box)
    of = f' data-part="{part.removeprefix("part-")}"' if part else ""
    return (
        f'<rect{of} x="{x}" y="{y}" width="{width}" height="{height}" fill="none" '
        f'pointer-events="all" {words}/>'
    )


def _q(text: Any) -> str:
    return html.escape(str(text))
