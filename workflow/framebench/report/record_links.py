"""Links from rows of the report to the records behind them."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..cases.conditions import KEYS
from ..records.run import Run
from ..tables import measured
from ..tables.columns import Row
from ..tables.results import CaseResults
from ..tables.table import Table


@dataclass(frozen=True)
class Link:
    """A link to a record. ``label``: text for screen readers."""

    text: str
    href: str
    label: str


_LINK = re.compile(r'<a href="(?!#|https?:)([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)


class RowLinks:
    """Lookup of the runs behind a row, and links to their records."""

    def __init__(self, cases: CaseResults, link: Callable[[Run, str], Link]) -> None:
        self._runs: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
        for key, result in cases.items():  # some tables have no column for the unit
            if key == result.runs[0].key:  # once per case, not once per metric
                self._runs[_cells_of(key.row)] += result.runs
        self._link = link

    @staticmethod
    def none() -> RowLinks:
        """Return an empty lookup, for a page without records."""
        return RowLinks({}, lambda run, text: Link(text, "", ""))

    def runs(self, table: Table, row: Row) -> list[tuple[str, Sequence[Run]]]:
        """Return the labelled runs behind a row."""
        if table.runs:
            return [("", table.runs(row))]
        results: list[tuple[str, Sequence[Run]]] = []
        for label, fields in table.behind(row):
            case = {**row, **fields}
            runs = self._runs.get(_cells_of(case), ())
            same = [run for run in runs if _is_of(run, row)]
            if same:
                results.append((label, same))
        return results

    def to(self, runs: Sequence[Run]) -> list[Link]:
        """Return links to the records of runs, numbered by repeat."""
        return [self._link(run, str(run.repeat)) for run in runs]


def _cells_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def _is_of(run: Run, row: Row) -> bool:
    """Return whether a run has the row's unit and parameters, if the table has these columns."""
    parameters = measured.parameters_text(run.case)
    unit = row.get("unit", run.unit)
    return (unit, row.get("parameters", parameters)) == (run.unit, parameters)


def to_record(root: Path, folder: Path, run: Run, text: str) -> Link:
    """Return a link to the run's record, or to the CSV file that contains the run."""
    target = run.record or root / run.origin.rpartition(":")[0]
    href = quote(os.fsencode(os.path.relpath(target, folder)).replace(os.fsencode(os.sep), b"/"))
    if run.record is None:
        return Link(run.origin, href, run.origin)
    return Link(text, href, f"record of repeat {run.repeat}")


def named(html: str) -> str:
    """Return a page with file names in place of links to other files, for use without them."""
    return _LINK.sub(r'<span title="\1"\2>\3</span>', html)
