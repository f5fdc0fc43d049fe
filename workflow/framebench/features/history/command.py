"""``framebench history``: result sets in order, each case as a series, and its changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...files.whole_files import write_together
from ...statistics import change_points
from ...tables import frames
from ...tables.formatting import counted
from . import page, sources, trends
from .trends import POINTS


def make(sets: Sequence[Path], by: str, results: Path) -> None:
    """Write ``tables/history.csv``, ``tables/changes.*`` and ``history.html`` below ``results``.
    Prints the changes. Raises RecordsError if no set can be read."""
    measured, unread, count = sources.load(sets)
    every, unplaced = trends.series_of(measured, by)
    problems = [*unread, *unplaced]
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    points, changes = trends.points_frame(every), trends.changes_frame(every)
    files = frames.files({trends.CHANGES: changes}, results / "tables")
    # One row for each case of each set is too long for Markdown.
    files[results / "tables" / f"{POINTS.name}.csv"] = frames.csv_text(points)
    path = results / "history.html"
    files[path] = page.render(every, points, changes, by, problems)
    write_together(files)
    print(f"{counted(count, 'set')}, by {by}")
    print(trends.summary_text(every, changes))
    if any(len(history.places) > change_points.MOST for history in every):
        print(f"only the latest {change_points.MOST} sets of a series are searched for changes")
    print(f"\ntable: {results / 'tables' / 'changes.csv'}\npage:  {path}")
