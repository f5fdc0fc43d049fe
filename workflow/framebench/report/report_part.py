"""Part of a report that a feature adds to the report of the core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from ..records.record_sets import RecordSet
    from ..tables.results import CaseResults
    from ..tables.table import Inputs, Table


class ReportPart:
    """Part of a report; a feature overrides the methods that it needs."""

    def inputs(self, record_set: RecordSet, cases: CaseResults, results: Path) -> Mapping[str, Any]:
        """Return inputs of the feature's tables, by name, for :attr:`Inputs.of_features`."""
        return {}

    def tables(self, record_set: RecordSet, inputs: Inputs) -> Mapping[Table, pd.DataFrame]:
        """Return further tables, each with a section of its own on the page."""
        return {}

    def files(self, inputs: Inputs, folder: Path) -> Mapping[Path, str]:
        """Return further files of the folder of tables, with their text."""
        return {}

    def lines(self, inputs: Inputs) -> Iterator[str]:
        """Yield lines that are printed before the summary."""
        yield from ()
