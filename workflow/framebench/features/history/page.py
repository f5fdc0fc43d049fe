"""Tables of a history, and its HTML page: changes, a plot for each series, and the tables."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...files.whole_files import write_together
from ...report import html_report, page_data, page_tables
from ...report.page_data import RowLinks
from ...report.plots import WIDTH, Look, Plot, interval_text
from ...report.selection import axes_of, left_out, short
from ...report.svg import ALARM, FONT, MUTED, Parts, svg
from ...tables import formatting, frames
from ...tables.formatting import counted, number
from ...tables.frames import explanations
from ...tables.measured import figure_name
from . import trends
from .trends import CHANGES, POINTS, CaseHistory, counts_text

#: Largest number of plots on a page; changed series come first.
MAX_PLOTS = 24
#: Height of a plot, in drawing units.
HEIGHT = 220
#: Width of the axis, of a character, and of the gap between labels, in drawing units.
AXIS, CHARACTER, GAP = WIDTH - 84, 7.4, 18


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
    files[path] = html_report.render_page(
        "history.html.j2",
        by=by,
        sets=len({point.source for series in every for point in series.measured}),
        counts=counts_text(every),
        plots=plots(every),
        tables=shown,
        data=page_data.page_data(shown, RowLinks({})),
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
            svg=_draw(history, look),
            description=f"{figure_name(history.key)} over {len(history.places)} sets, with "
            f"{len(history.changes)} changes. The numbers are in the table below.",
            caption="A dot is the median of a set, a bar its 95 % interval; a dot without one has "
            "too few repeats. "
            + "A dashed line marks where a new level begins. " * bool(history.changes)
            + left_out(len(chosen), len(drawn), "series with two figures"),
            axes=axes_of(history.key.row),
        )
        for history in chosen
    ]


def _draw(series: CaseHistory, look: Look) -> Markup:
    """Return a series as SVG, with result sets at equal distances in their order."""
    framework = series.key.case.framework
    colour = look.colour(framework) if framework else MUTED
    results = [point.result for point in series.measured]
    known = [(at, result) for at, result in enumerate(results) if result.throughput is not None]
    parts = Parts()

    def drawing(figure: Figure) -> None:
        axes = figure.add_axes((70 / WIDTH, 40 / HEIGHT, 1 - 84 / WIDTH, 1 - 56 / HEIGHT))
        for at, result in known:
            if result.interval:
                axes.plot([at] * 2, result.interval, color=colour, linewidth=1.4, alpha=0.5)
        values = [result.throughput or 0.0 for _, result in known]
        axes.plot([at for at, _ in known], values, color=colour, linestyle="", marker="o",
                  markersize=4.5)  # fmt: skip
        for (at, result), value in zip(known, values, strict=True):
            said = f"{series.labels[at]}: {number(value)}{interval_text(result.interval)}"
            parts.point("", axes, (at, value), said)
        for change in series.changes:
            axes.axvline(series.places[change.at] - 0.5, color=ALARM, linewidth=1.4,
                         linestyle=(0, (4, 3)))  # fmt: skip
        labels = [short(label) for label in series.labels]
        room = max(1, int(AXIS / (CHARACTER * max(map(len, labels)) + GAP)))
        shown = range(0, len(labels), math.ceil(len(labels) / room))
        axes.set_xticks(list(shown), [labels[n] for n in shown])
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylabel(f"{series.key.metric}, {series.key.unit}", fontsize=FONT - 1)

    return svg(drawing, WIDTH, HEIGHT, parts)
