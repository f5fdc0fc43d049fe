"""Printed cells that the tables of a report stand next to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import PROJECT
from ...report.report_part import ReportPart
from ...tables.printed_cells import Printed
from ..audit import lint
from .measured_rows import MODELS
from .printed_rows import AMP

if TYPE_CHECKING:
    from ...records.record_sets import RecordSet
    from ...tables.results import CaseResults


class PrintedCells(ReportPart):
    """Printed cells in the inputs of tables."""

    def inputs(self, found: RecordSet, cases: CaseResults, results: Path) -> Mapping[str, Any]:
        """Return the printed cells to compare these runs with."""
        return {"printed": printed_beside(found)}


def printed_beside(record_set: RecordSet) -> list[Printed]:
    """Return the cells of published tables to compare these runs with.
    These are the tables next to the runs; else the shipped tables, if they have a comparable case.
    """
    cases = {run.case for run in record_set.runs}
    folders = [record_set.root]
    if not (record_set.root / lint.PUBLISHED_NAME).is_file():
        is_beside = any(case.precision == AMP and case.model in MODELS for case in cases)
        folders = lint.folders(PROJECT / "results" / "published") if is_beside else []
    return [one for folder in folders for one in lint.marked(folder)]


PART = PrintedCells()
