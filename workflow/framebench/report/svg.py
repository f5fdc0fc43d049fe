"""Matplotlib drawings as inline SVG with the page's colours and font.

Matplotlib draws with placeholder colours, which are replaced by CSS variables, so that one drawing
serves light and dark mode. Text stays text (searchable, selectable). Ids are made unique, so that a
page can have many drawings. Nothing depends on time or a display.

Colours of frameworks are the same in every report. People who see no red, no green or no blue can
tell them apart on light and dark pages: in simulations of their vision (Machado, Oliveira &
Fernandes, IEEE TVCG 15, 2009) any two colours differ by at least 20 (CIE76).

A drawing has parts, one per case, for the page's filter and its tooltips. Artists carry the name of
their part as ``gid``, which becomes the attribute ``data-part``. Tooltips are attributes of
invisible rectangles over the drawing."""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

FONT = 13
#: Side of the rectangle around a point, in drawing units.
_SIDE = 14.0
LIGHT = ("#3c3bb3", "#303c07", "#9ab88e", "#57c6fd", "#bc406c", "#b9b808", "#3c8102", "#681744",
         "#c683ac")  # fmt: skip
DARK = ("#875cd8", "#667d26", "#4a95a1", "#11f3e0", "#d22c78", "#f4e1a5", "#aaba13", "#ada6fc",
        "#dc8883")  # fmt: skip
#: Built-in frameworks, in the order of their colours.
_OWN = ("jax", "mxnet", "oneflow", "paddle", "pytorch", "tensorflow", "tensorflow1", "megengine",
        "mindspore")  # fmt: skip
#: Placeholder colours, and the variables that replace them.
INK, MUTED, GRID, ALARM = "#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04"
SERIES = tuple(f"#0a0b{number:02x}" for number in range(1, 10))
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    ALARM: "var(--alarm)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, 1)},
}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "framebench",
    "text.parse_math": False,  # a name may hold a dollar sign
    "font.size": FONT,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.labelsize": FONT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 1,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": FONT - 1,
    "ytick.labelsize": FONT - 1,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "path.simplify": False,
}


def colour_number(framework: str) -> int:
    """Return the index of a framework's colour in LIGHT and DARK.

    Other frameworks get a colour by a checksum of the name, so that two may share one."""
    if framework in _OWN:
        return _OWN.index(framework)
    return zlib.crc32(framework.encode()) % len(LIGHT)


def svg(draw: Callable[[Figure], None], width: float, height: float, parts: Parts) -> Markup:
    """Return a drawing as inline SVG.

    ``draw``: draws on an empty figure. ``parts``: parts that ``draw`` fills."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        draw(figure)
        for axes in figure.axes:
            axes.patch.set_visible(False)
            axes.tick_params(length=0, pad=6)
            axes.get_xlim()  # Matplotlib computes limits on request
            axes.get_ylim()
        over = parts.markup(height)
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
            buffer, metadata={"Date": None}
        )
    return _inline(buffer.getvalue(), width, height, over, parts.attribute())


def legend_of(figure: Figure, **words: Any) -> None:
    """Add a legend whose entries belong to the parts that they explain."""
    legend = figure.legend(**words)
    handles = words.get("handles") or [
        artist for axes in figure.axes for artist in axes.get_legend_handles_labels()[0]
    ]
    shown = zip(handles, legend.legend_handles, legend.get_texts(), strict=True)
    for handle, drawn, text in shown:
        for artist in filter(None, (drawn, text)):
            artist.set_gid(handle.get_gid())


def _inline(drawing: str, width: float, height: float, over: str, attributes: str) -> Markup:
    """Return a compact <svg> element with unique ids and without fixed colours or fonts.

    ``over``: elements on top of the drawing; ``attributes``: attributes of the element."""
    body = drawing[drawing.index("<svg") :]
    body = body[body.index(">") + 1 :].rstrip().removesuffix("</svg>")
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    prefix = "d" + hashlib.sha256(body.encode()).hexdigest()[:8]
    # Matplotlib escapes text, so anything between < and > is markup. All tags are changed at once.
    texts = re.split(r"<[^>]*>", body)
    tags = _tags("\0".join(re.findall(r"<[^>]*>", body)), prefix).split("\0")
    body = "".join(part for pair in zip(texts, [*tags, ""], strict=True) for part in pair)
    body = re.sub(r">\s+<", "><", body).strip()
    while (shorter := re.sub(r"<(g|defs)>(</\1>)|<(g|defs)/>", "", body)) != body:
        body = shorter
    return Markup(
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'aria-hidden="true" focusable="false"{attributes}>{body}{over}</svg>'
    )


def _tags(tags: str, prefix: str) -> str:
    tags = re.sub(r' id="[a-zA-Z_.0-9]+_\d+"', "", tags)
    tags = re.sub(
        r' id="part-([\d-]+)"', lambda some: f' data-part="{some[1].replace("-", " ")}"', tags
    )
    tags = re.sub(r' id="(\w+)"', rf' id="{prefix}\1"', tags)
    tags = tags.replace("xlink:href", "href").replace('href="#', f'href="#{prefix}')
    tags = tags.replace("url(#", f"url(#{prefix}")
    tags = re.sub(r"font-family: [^;]*; ?", "", tags)
    tags = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", tags)
    tags = re.sub(r"\d+\.\d{3,}", lambda digits: f"{float(digits[0]):.2f}", tags)
    tags = re.sub(r"#0a0[ab]0\d", lambda colour: VARIABLES[colour[0]], tags)
    return re.sub(r"\s+", " ", tags)


# ---- parts ---------------------------------------------------------------------------------------


@dataclass
class Parts:
    """Parts of one drawing, filled while it is drawn."""

    _axes: list[Mapping[str, str]] = field(default_factory=list)
    _rectangles: list[str] = field(default_factory=list)
    #: Part, axes, position and tooltip text of each point.
    _points: list[tuple[str, Axes, tuple[float, float], str]] = field(default_factory=list)

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
        self._rectangles.append(_rectangle(part, (0, top, width, height), text))

    def point(self, part: str, axes: Axes, position: tuple[float, float], text: str) -> None:
        """Add a tooltip ``text`` around a point."""
        self._points.append((part, axes, position, text))

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
        for part, axes, position, text in self._points:
            x, y = axes.transData.transform(position)
            box = (x - _SIDE / 2, height - y - _SIDE / 2, _SIDE, _SIDE)
            points.append(_rectangle(part, box, text))
        return "".join([*self._rectangles, *points])


def _rectangle(part: str, box: Sequence[float], text: str) -> str:
    x, y, width, height = (f"{value:.1f}".removesuffix(".0") for value in box)
    attribute = f' data-part="{part.removeprefix("part-")}"' if part else ""
    return (
        f'<rect{attribute} x="{x}" y="{y}" width="{width}" height="{height}" fill="none" '
        f'pointer-events="all" data-tip="{html.escape(text)}"/>'
    )
