"""Plots of benchmarks other than steps: strips per metric, and lines over sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from ..cases.conditions import Parameters
from ..tables import measured
from ..tables.formatting import number
from ..tables.results import CaseResult, CaseResults
from . import plots
from .plots import ChartLine, Look, Plot, PlotRow, Style, interval_text
from .selection import axes_of_other, left_out, spread
from .svg import Parts

MAX_ROWS, MAX_LINES = 30, 8
#: Most panels of metrics that a run has at several points.
MAX_PANELS = 8
#: Ratio of values below which an axis would have too few powers of ten.
_DECADES = 20
#: Points of one case by rising size: size, median, interval or None.
SizeLine = ChartLine[tuple[float, float, tuple[float, float] | None]]


def panels(cases: CaseResults, look: Look, kind: str) -> list[Plot]:
    """Return the plots of one benchmark.

    Metrics at one point: a strip plot per metric or, without a framework, per unit and direction.
    Metrics at several sizes: lines, a plot per combination of text parameters. Metrics at points
    named by one word: a plot per point. Points of several values, such as shapes, have no plot."""
    metrics: dict[str, list[CaseResult]] = defaultdict(list)
    series: dict[tuple[str, str], list[CaseResult]] = defaultdict(list)
    points: dict[tuple[str, Parameters], list[CaseResult]] = defaultdict(list)
    for result in measured.by_kind(cases)[kind]:
        key = result.key
        if not key.point:
            metrics[key.metric].append(result)
        elif len(key.point) == 1 and isinstance(key.point[0][1], (int, float)):
            texts = (value for _, value in result.case.parameters if isinstance(value, str))
            series[key.metric, ", ".join(texts)].append(result)
        elif result.values and len(key.point) == 1:
            points[key.metric, key.point].append(result)
    strips: dict[Any, list[CaseResult]] = defaultdict(list)
    for name, (first, *rest) in metrics.items():
        strips[name if first.case.framework else (first.unit, first.better)] += [first, *rest]
    curves = [
        _size_panel(words or kind.replace("_", " "), some, look)
        for (_, words), some in series.items()
    ]
    return [
        *(_panel(kind, some, look) for some in strips.values()),
        *filter(None, curves),
        *(_panel(kind, some, look) for some in list(points.values())[:MAX_PANELS]),
    ]


def _panel(kind: str, results: Sequence[CaseResult], look: Look) -> Plot:
    label = measured.labels(results)
    first = results[0]
    name, unit = first.key.metric.replace("_", " "), first.unit
    where = ", ".join(f"{axis} {value}" for axis, value in first.key.point)
    name += f" at {where}" if where else ""
    several = len({result.key.metric for result in results}) > 1
    name, what = (kind.replace("_", " "), "figures") if several else (name, "cases")

    def label_of(result: CaseResult) -> str:
        if not several:
            return label(result)
        own = label(result).removeprefix(f"{measured.NO_FRAMEWORK}, ")
        return f"{result.key.metric.replace('_', ' ')}, {own}"

    shown = results[:MAX_ROWS]
    rows = [
        PlotRow(
            label_of(result),
            measured.runs_in(result.case),
            result.values,
            "" if result.values else result.status,
            result.interval,
            axes_of_other(result.key.row),
        )
        for result in shown
    ]
    return Plot(
        title=f"{name}, {unit} ({first.better} is better)",
        svg=plots.strips(rows, look, unit),
        description=f"{name} of {len(shown)} {what} of {kind}: a dot for each repeat, a tick "
        "at the median. The numbers are in the table.",
        caption="Each repeat is a dot, the tick and the number are the median. "
        + left_out(len(shown), len(results), what),
    )


# ---- lines over sizes ----------------------------------------------------------------------------


def _size_panel(name: str, results: Sequence[CaseResult], look: Look) -> Plot | None:
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
        svg=_draw(lines, look, size, unit),
        description=f"{metric} over {size} of {len(lines)} cases: {name}. The numbers are in the "
        "table.",
        caption="A dot is the median over repeats at a size, a bar its 95 % interval; a dot "
        "without one has too few repeats. " + left_out(len(lines), len(cases), "cases"),
    )


def _draw(lines: Sequence[SizeLine], look: Look, size: str, unit: str) -> Markup:
    """Return lines over sizes as SVG.

    The size axis is logarithmic, the value axis too if all values are positive."""

    def one(axes: Axes, line: SizeLine, style: Style, parts: Parts) -> None:
        sizes = [point[0] for point in line.points]
        medians = [point[1] for point in line.points]
        axes.plot(sizes, medians, label=line.label, markersize=5, **style)
        bars = [(at, *interval) for at, _, interval in line.points if interval]
        name = style["gid"]
        if bars:
            axes.vlines(*zip(*bars, strict=True), color=style["color"], linewidth=3, alpha=0.35,
                        gid=name)  # fmt: skip
        for at, value, interval in line.points:
            said = f"{line.label}, {size} {_short(at)}: {number(value)} {unit}"
            parts.point(name, axes, (at, value), said + interval_text(interval))

    def finish(axes: Axes) -> None:
        _scale(axes, [point for line in lines for point in line.points])
        axes.set_xlabel(f"{size} (logarithmic axis)")
        axes.set_ylabel(unit)

    return plots.line_chart(lines, look, one, finish)


def _scale(axes: Axes, points: Sequence[tuple[float, float, Any]]) -> None:
    axes.set_xscale("log", base=2)
    plots.number_ticks(axes.xaxis, LogLocator(base=2, numticks=6), _short)
    values = [value for _, value, _ in points]
    if min(values) > 0:
        axes.set_yscale("log")
        is_short = max(values) < _DECADES * min(values)
        at = MaxNLocator(5) if is_short else axes.yaxis.get_major_locator()
        plots.number_ticks(axes.yaxis, at)


def _short(value: float) -> str:
    """Return a size with a binary prefix: 64 Ki."""
    for exponent, prefix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value >= 2**exponent:
            return f"{value / 2**exponent:g} {prefix}"
    return f"{value:g}"
