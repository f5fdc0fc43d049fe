"""The report's plots as inline SVG that takes its colours and its font from the page.

Matplotlib draws with placeholder colours; `_svg` replaces each by a CSS variable, so that one
drawing serves light and dark. Text stays text (searchable, read aloud), and ids are made unique
so that many drawings can live in one page. Nothing here depends on the time or on a display.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from . import statistics

WIDTH = 760  # drawing units of a wide plot: CSS pixels at its natural size
ROW = 22
FONT = 13
#: A step this many times as long as the median step of its window is called slow.
SLOW = 1.5

INK, MUTED, GRID, ACCENT, ALARM = "#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04", "#0a0a05"
SERIES = tuple(f"#0a0b{number:02x}" for number in range(1, 9))
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    ACCENT: "var(--accent)",
    ALARM: "var(--alarm)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, 1)},
}
_STYLE = {
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


@dataclass(frozen=True)
class Plot:
    """A drawing with its words: ``description`` is read instead of it, ``caption`` stands below
    and says what was left out."""

    title: str
    svg: Markup
    description: str
    caption: str
    wide: bool = True


@dataclass(frozen=True)
class Row:
    """One line of a strip plot. Without ``values`` it is a gap, and ``note`` says why in words;
    without a framework it is a heading."""

    label: str
    framework: str = ""
    values: Sequence[float] = ()
    note: str = ""


@dataclass(frozen=True)
class Line:
    """A weak-scaling line: (devices, speed-up against one device), devices rising."""

    label: str
    framework: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Look:
    """Colour and marker of each framework: the same in every plot of a report."""

    frameworks: Sequence[str]

    def colour(self, framework: str) -> str:
        return SERIES[self.frameworks.index(framework) % len(SERIES)]

    def variable(self, framework: str) -> str:
        """The colour as CSS, for the page around the plots."""
        return _VARIABLES[self.colour(framework)]

    def marker(self, framework: str) -> str:
        position = self.frameworks.index(framework)
        # Past eight frameworks the colours come round again, with other markers.
        return MARKERS[(position + position // len(SERIES)) % len(MARKERS)]


def number(value: float) -> str:
    """Four significant digits without an exponent, as plots and their captions need them."""
    if value == 0 or not abs(value) < 1e7:
        return f"{value:.4g}"
    digits = 0
    while digits < 6 and abs(value) * 10**digits < 1000:
        digits += 1
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def strips(rows: Sequence[Row], look: Look, axis: str, reference: float | None = None) -> Markup:
    """A dot for each value and a tick at the median, one row each; the median in numbers at the
    right. With ``reference`` (ratios) a line stands there and the dots hang on it."""
    values = [value for row in rows for value in row.values]
    logarithmic = reference is None and bool(values) and max(values) > 40 * min(values) > 0
    left = min(300, 24 + 7 * max(len(row.label) for row in rows))
    height = ROW * len(rows) + 58

    def draw(figure: Figure) -> None:
        axes = figure.add_axes(
            (left / WIDTH, 48 / height, (WIDTH - left - 84) / WIDTH, ROW * len(rows) / height)
        )
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        _x_axis(axes, values, logarithmic, reference)
        axes.set_xlabel(axis + (" (logarithmic axis)" if logarithmic else ""))
        if reference is not None:
            axes.axvline(reference, color=MUTED, linewidth=1.2)
        beside = axes.get_yaxis_transform()
        for place, row in enumerate(rows):
            heading = not row.framework
            axes.annotate(
                row.label, (0, place), xycoords=beside, textcoords="offset points",
                xytext=(8 - left, 0) if heading else (-10, 0), va="center",
                ha="left" if heading else "right", color=MUTED if heading else INK,
                fontweight="bold" if heading else "normal",
            )  # fmt: skip
            if row.values:
                _strip(axes, place, row, look, reference)
            elif row.note:
                axes.annotate(row.note, (0, place), xycoords=beside, textcoords="offset points",
                              xytext=(8, 0), va="center", color=MUTED, fontstyle="italic")

    return _svg(draw, WIDTH, height)


def _strip(axes: Axes, place: int, row: Row, look: Look, reference: float | None) -> None:
    colour = look.colour(row.framework)
    middle = statistics.median(row.values)
    start = min(row.values) if reference is None else reference
    axes.hlines(place, start, max(row.values), color=colour, linewidth=1.6, alpha=0.55)
    axes.plot(
        row.values, [place] * len(row.values), linestyle="none", marker=look.marker(row.framework),
        markersize=6.5, color=colour, alpha=0.6 if len(row.values) > 1 else 0.95,
        markeredgewidth=0, clip_on=False,
    )  # fmt: skip
    if len(row.values) > 1:
        axes.plot([middle], [place], linestyle="none", marker="|", markersize=15, color=colour,
                  markeredgewidth=2.4, clip_on=False)
    axes.annotate(number(middle), (1, place), xycoords=axes.get_yaxis_transform(),
                  textcoords="offset points", xytext=(74, 0), va="center", ha="right")


def _x_axis(
    axes: Axes, values: Sequence[float], logarithmic: bool, reference: float | None
) -> None:
    if not values:
        axes.set_xticks([])
        axes.set_xlim(0, 1)
        axes.grid(visible=False)
    elif logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.3, max(values) * 1.3)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=12))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_xlim(0, 1.04 * max(*values, reference or 0))
        axes.xaxis.set_major_locator(MaxNLocator(6))


def scaling(lines: Sequence[Line], look: Look) -> Markup:
    """Speed-up against devices with the ideal line, and beside it what is left of the ideal."""
    devices = sorted({count for line in lines for count, _ in line.points} | {1})
    legend = ROW * ((len(lines) + 2) // 2)
    height = 300 + legend

    def draw(figure: Figure) -> None:
        size = (0.4, 226 / height)
        speed = figure.add_axes((56 / WIDTH, (46 + legend) / height, *size))
        efficiency = figure.add_axes((0.58, (46 + legend) / height, *size))
        ideal = speed.plot(devices, devices, color=MUTED, linewidth=1.4, label="ideal")
        efficiency.axhline(100, color=MUTED, linewidth=1.4)
        handles: list[Any] = list(ideal)
        seen: dict[str, int] = {}
        for line in lines:
            dash = DASHES[seen.setdefault(line.framework, 0) % len(DASHES)]
            seen[line.framework] += 1
            counts = [count for count, _ in line.points]
            ratios = [ratio for _, ratio in line.points]
            style: dict[str, Any] = {
                "color": look.colour(line.framework), "marker": look.marker(line.framework),
                "linestyle": dash, "markersize": 6, "markeredgewidth": 0,
            }  # fmt: skip
            handles += speed.plot(counts, ratios, label=line.label, **style)
            percent = [100 * ratio / count for count, ratio in line.points]
            efficiency.plot(counts, percent, **style)
        for axes, title in ((speed, "Speed-up"), (efficiency, "Efficiency, % of ideal")):
            axes.set_xscale("log", base=2)
            axes.set_xticks(devices, [str(count) for count in devices])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("devices")
            axes.set_title(title, loc="left", fontsize=FONT, color=INK)
        speed.set_yscale("log", base=2)
        speed.set_yticks(devices, [str(count) for count in devices])
        speed.yaxis.set_minor_formatter(NullFormatter())
        efficiency.set_ylim(0, max(105.0, efficiency.get_ylim()[1]))
        figure.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.02, 0), ncols=2,
                      fontsize=FONT - 1, handlelength=2.6, columnspacing=2, labelspacing=0.45)

    return _svg(draw, WIDTH, height)


def steps(warmup: Sequence[float], window: Sequence[float], colour: str) -> Markup:
    """Seconds of every step of a run: the warm-up grey before the shaded window, slow steps
    marked, and what would blow up the axis at its upper edge, with its value."""
    middle = statistics.median(window)
    scale, unit = (1.0, "s") if middle >= 1 else (1000.0, "ms")
    low = min(0.9 * middle, 0.98 * min(window))
    high = max(1.1 * middle, 1.05 * min(max(window), 3 * middle))
    series = [(index - len(warmup) + 1, value) for index, value in enumerate((*warmup, *window))]
    marker = 4.5 if len(series) <= 300 else 2.5

    def dots(axes: Axes, part: Iterable[tuple[int, float]], colour: str, size: float) -> None:
        inside = [(at, value * scale) for at, value in part if low <= value <= high]
        if inside:
            axes.plot(*zip(*inside, strict=True), linestyle="none", marker="o", markersize=size,
                      color=colour, markeredgewidth=0)  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.add_axes((54 / 380, 44 / 210, 314 / 380, 142 / 210))
        axes.axvspan(0.5, len(window) + 0.5, color=ACCENT, alpha=0.09, linewidth=0)
        axes.axhline(middle * scale, color=MUTED, linewidth=1)
        slow = [(at, value) for at, value in series if at > 0 and value > SLOW * middle]
        dots(axes, [point for point in series if point[0] <= 0], MUTED, marker)
        dots(axes, [point for point in series if point[0] > 0 and point not in slow], colour,
             marker)  # fmt: skip
        dots(axes, slow, ALARM, marker + 3)
        beyond = [(at, value) for at, value in series if value > high]
        for at, _ in beyond:
            axes.plot([at], [high * scale], marker="^", markersize=8, clip_on=False,
                      color=ALARM if at > 0 else MUTED, markeredgewidth=0)  # fmt: skip
        if beyond:
            at, value = max(beyond, key=lambda point: point[1])
            right = at < len(series) / 2
            axes.annotate(f"{number(value * scale)} {unit}", (at, high * scale),
                          xytext=(8 if right else -8, 0), textcoords="offset points",
                          va="center", ha="left" if right else "right", color=MUTED,
                          fontsize=FONT - 1)  # fmt: skip
        axes.set_xlim(0.5 - len(warmup) - 0.01 * len(series), len(window) + 0.5)
        axes.set_ylim(low * scale, high * scale)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("step of the timed window")
        axes.set_ylabel(unit)

    return _svg(draw, 380, 210)


def _svg(draw: Callable[[Figure], None], width: float, height: float) -> Markup:
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        draw(figure)
        for axes in figure.axes:
            axes.patch.set_visible(False)
            axes.tick_params(length=0, pad=6)
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
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
    tag = re.sub(r"#0a0[ab]0\d", lambda colour: _VARIABLES[colour[0]], tag)
    return re.sub(r"\s+", " ", tag)
