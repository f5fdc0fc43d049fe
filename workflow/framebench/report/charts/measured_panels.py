"""Plots of benchmarks other than steps: strips per metric, lines over sizes, or heat maps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...cases.conditions import Parameters
from ...tables import measured
from ...tables.results import CaseResult, CaseResults
from .. import plots
from ..plots import Look, Plot, PlotRow
from ..selection import axes_of_other, left_out
from . import series_curves

MAX_ROWS = 30
#: Most panels of metrics that a run has at several points.
MAX_PANELS = 8


def panels(cases: CaseResults, look: Look, kind: str) -> list[Plot]:
    """Return the plots of one benchmark.

    Metrics at one point: a strip plot per metric or, without a framework, per unit. Metrics at
    several sizes: lines, a plot per combination of text parameters. Points that are one word: one
    plot each. Points of several values, such as shapes, are only in the table."""
    metrics: dict[str, list[CaseResult]] = defaultdict(list)
    series: dict[tuple[str, str], list[CaseResult]] = defaultdict(list)
    points: dict[tuple[str, Parameters], list[CaseResult]] = defaultdict(list)
    for result in measured.by_kind(cases)[kind]:
        key = result.key
        if not key.point:
            metrics[key.metric].append(result)
        elif series_curves.has_sizes(result):
            series[key.metric, _text_parameters(result)].append(result)
        elif result.values and len(key.point) == 1:
            points[key.metric, key.point].append(result)
    curves = [
        series_curves.panel(words or kind.replace("_", " "), some, look)
        for (_, words), some in series.items()
    ]
    return [
        *(_panel(kind, some, look) for some in _together(metrics)),
        *filter(None, curves),
        *(_panel(kind, some, look) for some in list(points.values())[:MAX_PANELS]),
    ]


def _together(metrics: Mapping[str, list[CaseResult]]) -> list[list[CaseResult]]:
    """Return groups of results for one panel each.

    Frameworks are compared per metric; results without a framework are grouped by unit and
    direction."""
    found: dict[Any, list[CaseResult]] = defaultdict(list)
    for name, some in metrics.items():
        first = some[0]
        found[name if first.case.framework else (first.unit, first.better)] += some
    return list(found.values())


def _text_parameters(result: CaseResult) -> str:
    """Return the text parameters of a case."""
    return ", ".join(str(value) for _, value in result.case.parameters if isinstance(value, str))


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
