"""The way from a row of the report to the records behind it."""

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
    """To a record; ``label`` says for a screen reader which one ``text`` means."""

    text: str
    href: str
    label: str


#: What the records of a row are, and links to them.
RecordLinks = Sequence[tuple[str, Sequence[Link]]]

_LINK = re.compile(r'<a href="(?!#|https?:)([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)


class RowLinks:
    """The runs behind a row, and links to their records."""

    def __init__(self, cases: CaseResults, link: Callable[[Run, str], Link]) -> None:
        self._runs: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
        for key, result in cases.items():  # not all tables have a column for the unit
            if key == result.runs[0].key:  # once, however many metrics it has
                self._runs[_cells_of(key.row)] += result.runs
        self._link = link

    @staticmethod
    def none() -> RowLinks:
        """Of a page that has no records."""
        return RowLinks({}, lambda run, text: Link(text, "", ""))

    def behind(self, table: Table, row: Row) -> RecordLinks:
        """``row``: one of a table of cases."""
        return [(label, self.to(runs)) for label, runs in self.runs(table, row)]

    def runs(self, table: Table, row: Row) -> list[tuple[str, Sequence[Run]]]:
        """Those behind it, under what they are called there."""
        if table.runs:
            return [("", table.runs(row))]
        found: list[tuple[str, Sequence[Run]]] = []
        for label, fields in table.behind(row):
            case = {**row, **fields}
            runs = self._runs.get(_cells_of(case), ())
            same = [run for run in runs if _is_of(run, row)]
            if same:
                found.append((label, same))
        return found

    def to(self, runs: Sequence[Run]) -> list[Link]:
        """Their records, by the number of the repeat."""
        return numbered(runs, self._link)


def _cells_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def _is_of(run: Run, row: Row) -> bool:
    """Whether it has the unit and the parameters of the row, in tables that have these."""
    parameters = measured.parameters_text(run.case)
    unit = row.get("unit", run.unit)
    return (unit, row.get("parameters", parameters)) == (run.unit, parameters)


def to_record(root: Path, folder: Path, run: Run, text: str) -> Link:
    """To the run's record, or to the CSV file whose line it is."""
    target = run.record or root / run.origin.rpartition(":")[0]
    href = quote(os.fsencode(os.path.relpath(target, folder)).replace(os.fsencode(os.sep), b"/"))
    if run.record is None:
        return Link(run.origin, href, run.origin)
    return Link(text, href, f"record of repeat {run.repeat}")


def numbered(runs: Sequence[Run], link: Callable[[Run, str], Link]) -> list[Link]:
    """A link for each repeat; of lines of one CSV file, only the first says the file's name."""
    links = [link(run, str(run.repeat)) for run in runs]
    named = ""
    for place, (run, one) in enumerate(zip(runs, links, strict=True)):
        name, _, line = run.origin.rpartition(":")
        if run.record is None and name == named:
            links[place] = Link(f":{line}", one.href, one.label)
        named = name
    return links


def named(html: str) -> str:
    """A page that names other files instead of linking to them, for where they are not."""
    return _LINK.sub(r'<span title="\1"\2>\3</span>', html)
