"""Comparison of two sets of records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..config.values import RecordSource
from ..files.whole_files import write_together
from ..records.run import RecordsError
from ..tables.judged import grouped

if TYPE_CHECKING:
    pass


def make_comparison(base: RecordSource, candidate: RecordSource, results: Path) -> None:
    """Write ``tables/compare.csv`` and ``compare.html`` below ``results``, and print the verdicts.
    Raises RecordsError if no case is on both sides."""
    from ..comparison import compare
    from ..report import html_report
    from ..tables import frames

    frame = compare.compare(grouped(base), grouped(candidate))
    files = frames.files({compare.TABLE: frame}, results / "tables")
    page = results / "compare.html"
    files[page] = html_report.render_comparison(frame, results, str(base), str(candidate))
    write_together(files)
    print(compare.summary_text(frame))
    print(f"\ntable: {results / 'tables' / 'compare.csv'}\npage:  {page}")
    if frame["reason"].isin(compare.ALONE).all():
        raise RecordsError(f"compare: none of {len(frame)} cases is on both sides")
