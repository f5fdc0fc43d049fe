"""Horizontal stacked bars, with a colour per part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from ..tables.formatting import number
from .parts import Parts
from .plots import NARROW, ROW, TOP, WIDTH, Plot, write
from .selection import training_first
from .svg import FONT, MUTED, SERIES, svg


@dataclass(frozen=True)
class Bar:
    """A stacked bar.

    ``values``: one per part, in the unit of the axis; () for a heading. ``end``: text after the
    bar. ``axes``: values for the page's filter."""

    label: str
    values: Sequence[float] = ()
    end: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)


def grouped(
    rows: Iterable[Any], columns: Sequence[str], bars_of: Callable[[Sequence[Any]], Iterable[Bar]]
) -> list[Bar]:
    """Return bars below a heading per group of rows, which have equal values in ``columns``.

    The first two columns are model and mode; training is before inference."""
    groups: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for row in rows:
        groups[tuple(getattr(row, name) for name in columns)].append(row)
    ordered = sorted(groups.items(), key=lambda item: training_first(item[0]))
    return [bar for group, some in ordered for bar in (Bar(", ".join(group)), *bars_of(some))]


def plot(
    title: str,
    bars: Sequence[Bar],
    parts: Sequence[str],
    unit: str,
    description: str,
    caption: str,
) -> Plot:
    """Return a plot of stacked bars, also for phones; see :func:`draw`."""
    wide, narrow = (draw(bars, parts, unit, narrow) for narrow in (False, True))
    return Plot(title, wide, description, caption, narrow)


def draw(bars: Sequence[Bar], parts: Sequence[str], unit: str, narrow: bool = False) -> Markup:
    """Return stacked bars as SVG.

    ``parts``: names for the legend, which lists those that occur. ``narrow``: labels above the
    bars, for phones."""
    filled = [bar.values for bar in bars if bar.values]
    longest = max((sum(values) for values in filled), default=0.0)
    shown = [n for n in range(len(parts)) if any(values[n] for values in filled)]
    width = NARROW if narrow else WIDTH
    left = 12 if narrow else min(320, 28 + 8 * max(len(bar.label) for bar in bars))
    right = 16 + 8 * max([6, *(len(bar.end) for bar in bars)])
    high = 1.95 if narrow else 1.0
    total = sum(high if bar.values else 1.15 for bar in bars)
    columns = 3 if narrow else len(shown)
    legend = ROW * (-(-len(shown) // columns))
    height = ROW * total + 46 + legend
    known = Parts()

    def drawing(figure: Figure) -> None:
        axes = figure.add_axes(
            (left / width, (40 + legend) / height, (width - left - right) / width,
             ROW * total / height)
        )  # fmt: skip
        axes.set_ylim(total, 0)
        axes.set_yticks([])
        axes.set_xlim(0, longest or 1.0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(4 if narrow else 6, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel(unit)
        at = 0.0
        for bar in bars:
            if not bar.values:
                gid = known.add(bar.axes) if bar.axes else None
                write(
                    axes, bar.label, 0, at + 0.6, 8 - left, color=MUTED, fontweight="bold", gid=gid
                )
                at += 1.15
                continue
            middle = at + (1.3 if narrow else 0.5)
            name = known.add(bar.axes)
            write(axes, bar.label, 0, at + 0.5, -6 if narrow else -10,
                  ha="left" if narrow else "right", gid=name)  # fmt: skip
            _stack(axes, bar, middle, name)
            known.row(name, TOP + ROW * at, width, ROW * high, _tooltip(bar, parts, unit))
            at += high
        patches = [Patch(color=SERIES[n], label=parts[n]) for n in shown]
        figure.legend(handles=patches, loc="lower left", bbox_to_anchor=(0.02, 0), ncols=columns,
                      fontsize=FONT - 1, handlelength=1.0, columnspacing=1.4)  # fmt: skip

    return svg(drawing, width, height, known)


def _tooltip(bar: Bar, parts: Sequence[str], unit: str) -> str:
    """Return a bar's tooltip, with each part that is not zero."""
    texts = [f"{part} {number(value)}" for part, value in zip(parts, bar.values, strict=True)
             if value]  # fmt: skip
    return f"{bar.label}: {', '.join(texts)} ({unit})"


def _stack(axes: Axes, bar: Bar, at: float, name: str) -> None:
    start = 0.0
    for value, colour in zip(bar.values, SERIES, strict=False):
        if value:
            # Not barh, which looks at limits and units for each part of a bar.
            part = Rectangle((start, at - 0.33), value, 0.66, color=colour, linewidth=0, gid=name)
            axes.add_artist(part)
        start += value
    axes.annotate(bar.end, (start, at), textcoords="offset points", xytext=(6, 0), va="center",
                  annotation_clip=False, gid=name)  # fmt: skip
