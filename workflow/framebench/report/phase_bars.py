"""Where the wall time of runs went, as stacked bars: all runs together, and a run of each case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ..cases.names import topology_of
from ..tables.declared.run_phases import SUITE, TABLE, WORDS
from .plots import NARROW, ROW, WIDTH, Plot
from .selection import is_known, labels, left_out, rows_of, spread, training_first
from .svg import FONT, MUTED, SERIES, svg

MAX_ROWS = 40
#: What a bar is made of, in the order of a run, and what the legend calls it.
PARTS = {**{f"{name}_seconds": title for name, (title, _) in WORDS.items()},
         "unsplit_seconds": "not told"}  # fmt: skip
COLOURS = dict(zip(PARTS, SERIES, strict=False))
#: From how many units on a plot is in the next larger one.
_MANY = 300


@dataclass(frozen=True)
class Bar:
    """``seconds``: of each of PARTS; none is a heading."""

    label: str
    seconds: Sequence[float] = ()


def of_suite(table: pd.DataFrame) -> list[Plot]:
    """A bar for all runs together, and one for each framework."""
    bars = [Bar(row.framework, _seconds(row)) for row in rows_of(table)]
    if not any(is_known(row.window_seconds) for row in rows_of(table)):
        return []
    return [_plot("Time of all runs together", bars, f"Nothing is left out (rows: {len(bars)}).")]


def of_cases(table: pd.DataFrame) -> list[Plot]:
    """A bar for a run of each case whose records tell its phases."""
    every = [row for row in rows_of(table) if is_known(row.run_seconds)]
    if not every:
        return []
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in spread(every, lambda row: (row.model, row.mode, row.framework), MAX_ROWS):
        groups[row.model, row.mode].append(row)
    bars: list[Bar] = []
    for (model, mode), rows in sorted(groups.items(), key=lambda one: training_first(one[0])):
        bars.append(Bar(f"{model}, {mode}"))
        name = _names(rows)
        bars += sorted((Bar(name(row), _seconds(row)) for row in rows), key=lambda bar: bar.label)
    shown = sum(map(len, groups.values()))
    return [_plot("Time of a run of each case", bars, left_out(shown, len(every), "cases"))]


def _names(rows: Sequence[Any]) -> Callable[[Any], str]:
    """What the bars of cases are called: their framework, and what tells them apart besides."""
    label = labels([row._asdict() for row in rows])
    asked = {row: (topology_of(row), row.precision, f"batch {row.batch_per_device}")
             for row in rows}  # fmt: skip
    apart = [len(set(values)) > 1 for values in zip(*asked.values(), strict=True)]

    def name(row: Any) -> str:
        words = [word for word, tells in zip(asked[row], apart, strict=True) if tells]
        return ", ".join([label(row._asdict()), *words])

    return name


def _seconds(row: Any) -> list[float]:
    values = (getattr(row, part, None) for part in PARTS)
    return [float(value) if value is not None and is_known(value) else 0.0 for value in values]


def _plot(title: str, bars: Sequence[Bar], words: str) -> Plot:
    return Plot(
        title=title,
        svg=draw(bars),
        narrow=draw(bars, narrow=True),
        description=f"{title}: a bar for each of {sum(bool(bar.seconds) for bar in bars)}, made of "
        "the phases of runs. The numbers stand in the table below.",
        caption=f"The number is the whole. Only the window is measured. {words}",
    )


def draw(bars: Sequence[Bar], narrow: bool = False) -> Markup:
    """Bars of seconds, or of minutes or hours where they are many, each part in its colour.
    ``narrow`` puts the labels above the bars, for a phone."""
    longest = max((sum(bar.seconds) for bar in bars), default=0.0)
    unit, scale = _unit(longest)
    filled = [bar.seconds for bar in bars if bar.seconds]
    shown = [part for n, part in enumerate(PARTS) if any(one[n] for one in filled)]
    width = NARROW if narrow else WIDTH
    left = 12 if narrow else min(320, 28 + 8 * max(len(bar.label) for bar in bars))
    right = 64
    high = 1.95 if narrow else 1.0
    total = sum(high if bar.seconds else 1.15 for bar in bars)
    columns = 3 if narrow else len(shown)
    legend = ROW * (-(-len(shown) // columns))
    height = ROW * total + 46 + legend

    def drawing(figure: Figure) -> None:
        axes = figure.add_axes(
            (left / width, (40 + legend) / height, (width - left - right) / width,
             ROW * total / height)
        )  # fmt: skip
        axes.set_ylim(total, 0)
        axes.set_yticks([])
        axes.set_xlim(0, longest / scale or 1.0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(4 if narrow else 6, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel(unit)
        at = 0.0
        for bar in bars:
            if not bar.seconds:
                _write(axes, bar.label, at + 0.6, 8 - left, color=MUTED, fontweight="bold")
                at += 1.15
                continue
            middle = at + (1.3 if narrow else 0.5)
            _write(axes, bar.label, at + 0.5, -6 if narrow else -10,
                   ha="left" if narrow else "right")  # fmt: skip
            _stack(axes, bar, middle, scale)
            at += high
        patches = [Patch(color=COLOURS[part], label=PARTS[part]) for part in shown]
        figure.legend(handles=patches, loc="lower left", bbox_to_anchor=(0.02, 0), ncols=columns,
                      fontsize=FONT - 1, handlelength=1.0, columnspacing=1.4)  # fmt: skip

    return svg(drawing, width, height)


def _stack(axes: Axes, bar: Bar, at: float, scale: float) -> None:
    start = 0.0
    for part, seconds in zip(PARTS, bar.seconds, strict=True):
        axes.barh(at, seconds / scale, left=start / scale, height=0.66, color=COLOURS[part],
                  linewidth=0)  # fmt: skip
        start += seconds
    axes.annotate(f"{start / scale:.1f}", (start / scale, at), textcoords="offset points",
                  xytext=(6, 0), va="center", annotation_clip=False)  # fmt: skip


def _write(axes: Axes, text: str, at: float, offset: float, **style: Any) -> None:
    axes.annotate(
        text, (0, at), xycoords=axes.get_yaxis_transform(), va="center",
        textcoords="offset points", xytext=(offset, 0), **style,
    )  # fmt: skip


def _unit(seconds: float) -> tuple[str, float]:
    for unit, scale in (("seconds", 1.0), ("minutes", 60.0)):
        if seconds < _MANY * scale:
            return unit, scale
    return "hours", 3600.0


#: What is drawn of a table, by its name.
DRAWN = {SUITE.name: of_suite, TABLE.name: of_cases}
