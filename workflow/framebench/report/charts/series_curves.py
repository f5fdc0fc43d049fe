"""Metrics over sizes: a line per case, with an interval at each size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from ...tables import measured
from ...tables.formatting import number
from ...tables.results import CaseResult
from .. import line_charts
from ..parts import Parts
from ..plots import Look, Plot
from ..selection import axes_of_other, left_out, spread

MAX_LINES = 8
_DECADES = 20


#: Points of one case by rising size: size, median, interval or None.
SizeLine = line_charts.ChartLine[tuple[float, float, tuple[float, float] | None]]


def has_sizes(result: CaseResult) -> bool:
    """Return whether a case was measured at sizes, that is, points of one number."""
    point = result.key.point
    return len(point) == 1 and isinstance(point[0][1], (int, float))


def panel(name: str, results: Sequence[CaseResult], look: Look) -> Plot | None:
    """Return the plot of one metric over sizes; None without a figure.

    ``name``: text of the fields that the results share."""
    label = measured.labels(results)
    cases: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
    for result in results:
        if result.throughput is not None:
            cases[result.case, result.conditions].append(result)
    if not cases:
        return None
    chosen = spread(list(cases), lambda key: key[0].framework, MAX_LINES)
    lines = [
        SizeLine(
            label(cases[key][0]),
            measured.runs_in(cases[key][0].case),
            sorted(
                (
                    (result.key.point[0][1], result.throughput or 0.0, result.interval)
                    for result in cases[key]
                ),
                key=lambda point: point[0],
            ),
            axes_of_other(cases[key][0].key.row),
        )
        for key in chosen
    ]
    first = results[0]
    metric, unit = first.key.metric.replace("_", " "), first.unit
    size = first.key.point[0][0].replace("_", " ")
    return Plot(
        title=f"{name}: {metric}, {unit} ({first.better} is better)",
        svg=draw(lines, look, size, unit),
        description=f"{metric} over {size} of {len(lines)} cases: {name}. The numbers are in the "
        "table.",
        caption="The median over repeats at each size; a bar is the 95 % interval; a dot without "
        "one has none, for too few repeats. " + left_out(len(lines), len(cases), "cases"),
    )


def draw(lines: Sequence[SizeLine], look: Look, size: str, unit: str) -> Markup:
    """Return lines over sizes as SVG.

    The size axis is logarithmic, the value axis too if all values are positive."""

    def one(axes: Axes, line: SizeLine, style: line_charts.Style, parts: Parts) -> None:
        sizes = [point[0] for point in line.points]
        medians = [point[1] for point in line.points]
        axes.plot(sizes, medians, label=line.label, markersize=5, **style)
        bars = [(at, *interval) for at, _, interval in line.points if interval]
        name = style["gid"]
        if bars:
            axes.vlines(*zip(*bars, strict=True), color=style["color"], linewidth=3, alpha=0.35,
                        gid=name)  # fmt: skip
        for at, value, interval in line.points:
            said = f"{line.label}, {size} {short(at)}: {number(value)} {unit}"
            if interval:
                said += "; 95 % interval {} to {}".format(*map(number, interval))
            parts.point(name, axes, (at, value), said)

    def finish(axes: Axes) -> None:
        _scale(axes, [point for line in lines for point in line.points])
        axes.set_xlabel(f"{size} (logarithmic axis)")
        axes.set_ylabel(unit)

    return line_charts.draw(lines, look, one, finish)


def _scale(axes: Axes, points: Sequence[tuple[float, float, Any]]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    values = [value for _, value, _ in points]
    if min(values) > 0:
        axes.set_yscale("log")
        if max(values) < _DECADES * min(values):  # the axis would have too few powers of ten
            axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def short(value: float) -> str:
    """Return a size with a binary prefix: 64 Ki."""
    for exponent, prefix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value >= 2**exponent:
            return f"{value / 2**exponent:g} {prefix}"
    return f"{value:g}"
