"""Matplotlib drawings as inline SVG with the page's colours and font.

Matplotlib draws with placeholder colours, which are replaced by CSS variables, so that one drawing
serves light and dark mode. Text stays text (searchable, selectable). Ids are made unique, so that a
page can have many drawings. Nothing depends on time or a display."""

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

from .parts import Parts

FONT = 13
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
