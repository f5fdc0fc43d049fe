"""Tables of a history, and its HTML page: changes, a plot for each series, and the tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...files.whole_files import write_together
from ...report import html_report, page_data, page_tables
from ...report.charts import trend_lines
from ...report.charts.trend_lines import Trend
from ...report.plots import Look, Plot
from ...report.record_links import RowLinks
from ...report.selection import axes_of, left_out
from ...tables import formatting, frames
from ...tables.formatting import counted
from ...tables.legend import explanations
from ...tables.measured import figure_name
from . import trends
from .trends import CHANGES, POINTS, CaseHistory, counts_text

#: Largest number of plots on a page; changed series come first.
MAX_PLOTS = 24


def make(sets: Sequence[Path], by: str, results: Path) -> None:
    """Write ``tables/history.csv``, ``tables/changes.*`` and ``history.html`` below ``results``.
    Prints the changes. Raises RecordsError if no set can be read."""
    measured, unread, count = trends.load(sets)
    every, unplaced = trends.series_of(measured, by)
    for problem in (*unread, *unplaced):
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    points = POINTS.frame(row for series in every for row in trends.point_rows(series))
    changes = trends.changes_frame(every)
    files = frames.files({CHANGES: changes}, results / "tables")
    # One row for each case of each set is too long for Markdown.
    files[results / "tables" / f"{POINTS.name}.csv"] = frames.csv_text(points)
    path = results / "history.html"
    shown = [page_tables.page_table(CHANGES, changes), page_tables.page_table(POINTS, points)]
    files[path] = html_report.template("history.html.j2").render(
        **html_report.page_files(),
        by=by,
        sets=len({point.source for series in every for point in series.measured}),
        counts=counts_text(every),
        plots=plots(every),
        tables=shown,
        data=page_data.page_data(shown, RowLinks.none()),
        flags=explanations([points]),
    )
    write_together(files)
    print(f"{counted(count, 'set')}, by {by}")
    print(trends.summary_text(every, changes))
    print(f"\ntable: {results / 'tables' / 'changes.csv'}\npage:  {path}")


def plots(every: Sequence[CaseHistory]) -> list[Plot]:
    """Return a plot for each series with two figures, changed ones first."""
    drawn = [case_history for case_history in every if len(case_history.places) > 1]
    look = Look(sorted({history.key.case.framework for history in drawn} - {""}))
    chosen = sorted(drawn, key=lambda history: not history.changes)[:MAX_PLOTS]
    apart = formatting.differing_conditions([history.key.row for history in drawn])
    return [
        Plot(
            title=", ".join(filter(None, (figure_name(history.key), apart(history.key.row)))),
            svg=trend_lines.draw(trend(history), look),
            description=f"{figure_name(history.key)} over {len(history.places)} sets, with "
            f"{len(history.changes)} changes. The numbers are in the table below.",
            caption="A dot is the median of a set, a bar its 95 % interval; without one there are "
            "too few repeats. "
            + "The broken line is where a new level begins. " * bool(history.changes)
            + left_out(len(chosen), len(drawn), "series with two figures"),
            axes=axes_of(history.key.row),
        )
        for history in chosen
    ]


def trend(series: CaseHistory) -> Trend:
    """Return the data of a series' plot."""
    results = [point.result for point in series.measured]
    return Trend(
        framework=series.key.case.framework,
        unit=f"{series.key.metric}, {series.key.unit}",
        labels=series.labels,
        values=[result.throughput for result in results],
        intervals=[result.interval for result in results],
        changes=[series.places[change.at] for change in series.changes],
    )
