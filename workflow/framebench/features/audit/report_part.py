"""Published figures and printed cells next to the runs of a report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import PROJECT
from ...report.report_part import ReportPart
from . import lint, published
from .lint import PUBLISHED_NAME

if TYPE_CHECKING:
    import pandas as pd

    from ...records.record_sets import RecordSet
    from ...tables.results import CaseResults
    from ...tables.table import Inputs, Printed, Table


class PublishedFigures(ReportPart):
    """Comparison of published figures with the runs next to them."""

    def inputs(self, record_set: RecordSet, cases: CaseResults, results: Path) -> Mapping[str, Any]:
        """Return a function that reads the printed cells next to the runs, or else shipped ones."""
        return {"printed": cache(partial(_printed, record_set.root))}

    def tables(self, record_set: RecordSet, inputs: Inputs) -> Mapping[Table, pd.DataFrame]:
        """Return the compared figures; {} without runs or published figures."""
        reference = record_set.root / PUBLISHED_NAME
        if not record_set.runs or not reference.is_file():
            return {}
        return {published.TABLE: published.compare_published(inputs.cases, reference)}


def _printed(root: Path) -> list[Printed]:
    """Return the cells of published tables in ``root``; of the shipped tables if it has none."""
    is_beside = (root / PUBLISHED_NAME).is_file()
    folders = [root] if is_beside else lint.folders(PROJECT / "results" / "published")
    return [printed for folder in folders for printed in lint.marked(folder)]


PART = PublishedFigures()
