"""Comparison of two sets of records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..config.values import RecordSource
from ..files.whole_files import write_together
from ..records import record_sets
from ..records.run import RecordsError
from ..tables.judged import grouped
from . import reporting

if TYPE_CHECKING:
    from ..tables.table import Inputs


def make_comparison(base: RecordSource, candidate: RecordSource, results: Path) -> None:
    """Write ``tables/compare.csv`` and ``compare.html`` below ``results``, and print the verdicts.
    Raises RecordsError if no case is on both sides."""
    from ..comparison import agreement, compare
    from ..report import html_report
    from ..tables import frames

    frame = compare.compare(grouped(base), grouped(candidate))
    files = frames.files({compare.TABLE: frame}, results / "tables")
    page = results / "compare.html"
    files[page] = html_report.render_comparison(frame, results, str(base), str(candidate))
    write_together(files)
    print(compare.summary_text(frame))
    if base.path != candidate.path and not (base.variant or candidate.variant):
        print(agreement.summary_text(_inputs(base.path), _inputs(candidate.path)))
    print(f"\ntable: {results / 'tables' / 'compare.csv'}\npage:  {page}")
    if frame["reason"].isin(compare.ALONE).all():
        raise RecordsError(f"compare: none of {len(frame)} cases is on both sides")


def _inputs(source: Path) -> Inputs:
    """Return the inputs of tables of the records at ``source``."""
    sidecars = reporting.load_sidecars(source)
    return reporting.inputs_of(record_sets.load(source), sidecars)
