"""HTML page of a history: changes, a plot for each series, and tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...cases.conditions import MODES
from ...cases.names import topology_of
from ...files.problem import Problem
from ...report import html_report, html_tables, page_data
from ...report.charts import trend_lines
from ...report.charts.trend_lines import Level, Trend
from ...report.plots import Look, Plot
from ...report.record_links import RowLinks
from ...report.selection import axes_of, left_out
from ...statistics.change_points import DRIFT
from ...tables import formatting, measured
from ...tables.legend import explanations
from .trends import CHANGES, POINTS, CaseHistory, counts_text

#: Largest number of plots on a page; changed series come first.
MAX_PLOTS = 24
MAX_PROBLEMS = 50


def render(
    every: Sequence[CaseHistory],
    points: pd.DataFrame,
    changes: pd.DataFrame,
    by: str,
    problems: Sequence[Problem],
) -> str:
    """Render the page of the series."""
    shown = [
        html_tables.of_frame(CHANGES, changes),
        html_tables.of_frame(POINTS, points),
    ]
    return html_report.template("history.html.j2").render(
        **html_report.page_files(),
        by=by,
        sets=len({point.source for series in every for point in series.measured}),
        counts=counts_text(every),
        plots=plots(every),
        tables=shown,
        data=page_data.page_data(shown, RowLinks.none()),
        flags=explanations([points]),
        problems=problems[:MAX_PROBLEMS],
        problems_left_out=max(0, len(problems) - MAX_PROBLEMS),
    )


def plots(every: Sequence[CaseHistory]) -> list[Plot]:
    """Return a plot for each series with two figures, changed ones first."""
    drawn = [case_history for case_history in every if len(case_history.places) > 1]
    look = Look(sorted({history.key.case.framework for history in drawn} - {""}))
    chosen = sorted(drawn, key=lambda history: not history.changes)[:MAX_PLOTS]
    apart = formatting.differing_conditions([history.key.row for history in drawn])
    return [
        Plot(
            title=", ".join(filter(None, (_name(history), apart(history.key.row)))),
            svg=trend_lines.draw(trend(history), look),
            description=f"{_name(history)} over {len(history.places)} sets, with "
            f"{len(history.changes)} changes. The numbers stand in the table below.",
            caption="A dot is the median of a set, the bar its 95 % interval. "
            + "Hollow: no interval, for too few repeats. "
            * any(point.median and not point.interval for point in history.measured)
            + "The broken line is where a new level begins, grey is the level. "
            * bool(history.changes)
            + left_out(len(chosen), len(drawn), "series with two figures"),
            axes=axes_of(history.key.row),
        )
        for history in chosen
    ]


def trend(series: CaseHistory) -> Trend:
    """Return the data of a series' plot."""
    points = series.measured
    return Trend(
        framework=series.key.case.framework,
        unit=f"{series.key.metric}, {series.key.unit}",
        labels=series.labels,
        values=[point.median for point in points],
        intervals=[point.interval for point in points],
        levels=_levels(series),
    )


def _levels(series: CaseHistory) -> list[Level]:
    """Return the levels between the changes; [] without a change."""
    if not series.changes:
        return []
    values, places = series.values, series.places
    drifts = {change.start: change for change in series.changes if change.kind == DRIFT}
    steps = [change for change in series.changes if change.kind != DRIFT]
    first = min(change.start for change in series.changes)
    edges = sorted({first, len(values), *(step.at for step in steps)})
    changed = {step.at for step in steps}
    levels = []
    for start, end in itertools.pairwise(edges):
        some = np.array(values[start:end])
        left = right = float(np.median(some))
        if start in drifts:
            slope, level = np.polyfit(np.arange(len(some)), np.log(some), 1)
            left, right = np.exp([level, level + slope * (len(some) - 1)]).tolist()
        ends = places[start], places[end - 1]
        levels.append(Level(*ends, left, right, start in changed))
    return levels


def _name(series: CaseHistory) -> str:
    case = series.key.case
    if case.mode not in MODES:
        parts = [case.mode, series.key.metric, case.framework, topology_of(case)]
        return ", ".join(filter(None, (*parts, measured.parameters_text(case))))
    compiler = "" if case.compiler == "none" else case.compiler
    parts = [case.framework, compiler, case.model, case.mode, case.precision, topology_of(case)]
    return ", ".join(filter(None, (*parts, f"batch {case.batch_per_device}")))
