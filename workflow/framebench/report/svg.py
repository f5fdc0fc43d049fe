"""Matplotlib drawings as inline SVG that takes its colours and its font from the page.

Matplotlib draws with placeholder colours; here each is replaced by a CSS variable, so that one
drawing serves light and dark. Text stays text (searchable, selectable), and ids are made unique so
that many drawings can live in one page. Nothing depends on the time or on a display.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

FONT = 13
INK, MUTED, GRID, ACCENT, ALARM = "#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04", "#0a0a05"
SERIES = tuple(f"#0a0b{number:02x}" for number in range(1, 9))
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    ACCENT: "var(--accent)",
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


def svg(draw: Callable[[Figure], None], width: float, height: float) -> Markup:
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        draw(figure)
        for axes in figure.axes:
            axes.patch.set_visible(False)
            axes.tick_params(length=0, pad=6)
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
            buffer, metadata={"Date": None}
        )
    return _inline(buffer.getvalue(), width, height)


def _inline(drawing: str, width: float, height: float) -> Markup:
    """The <svg> element alone, small, without fixed colours or fonts, with ids of its own."""
    body = drawing[drawing.index("<svg") :]
    body = body[body.index(">") + 1 :].rstrip().removesuffix("</svg>")
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    prefix = "d" + hashlib.sha256(body.encode()).hexdigest()[:8]
    # Matplotlib escapes text, so that whatever stands between < and > is its own.
    body = re.sub(r"<[^>]*>", lambda tag: _tag(tag[0], prefix), body)
    body = re.sub(r">\s+<", "><", body).strip()
    while (shorter := re.sub(r"<(g|defs)>(</\1>)|<(g|defs)/>", "", body)) != body:
        body = shorter
    return Markup(
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'aria-hidden="true" focusable="false">{body}</svg>'
    )


def _tag(tag: str, prefix: str) -> str:
    tag = re.sub(r' id="[a-zA-Z_.0-9]+_\d+"', "", tag)
    tag = re.sub(r' id="(\w+)"', rf' id="{prefix}\1"', tag)
    tag = tag.replace("xlink:href", "href").replace('href="#', f'href="#{prefix}')
    tag = tag.replace("url(#", f"url(#{prefix}")
    tag = re.sub(r"font-family: [^;]*; ?", "", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", tag)
    tag = re.sub(r"\d+\.\d{3,}", lambda digits: f"{float(digits[0]):.2f}", tag)
    tag = re.sub(r"#0a0[ab]0\d", lambda colour: VARIABLES[colour[0]], tag)
    return re.sub(r"\s+", " ", tag)
