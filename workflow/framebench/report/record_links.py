"""The way from a row of the report to the records behind it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..records.run import Run
from ..tables.cases import CaseResults
from . import html_tables
from .html_tables import Link

RecordLinks = Sequence[tuple[str, Sequence[Link]]]


_LINK = re.compile(r'<a href="(?!#|https?:)([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)


class Links:
    """Record links of a row, for each kind of table."""

    def __init__(self, cases: CaseResults, link: Callable[[Run, str], Link]) -> None:
        self.cases: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
        for key, result in cases.items():  # not all tables have a column for the unit
            self.cases[key.cells] += result.runs
        self.link = link

    def case(self, row: Mapping[str, Any], label: str = "", **other: Any) -> RecordLinks:
        found = self.cases.get(html_tables.key_of(row, **other), ())
        runs = [run for run in found if run.unit == row.get("unit", run.unit)]
        return [(label, numbered(runs, self.link))] if runs else []

    def amp(self, row: Mapping[str, Any]) -> RecordLinks:
        return [link for p in ("fp32", "amp") for link in self.case(row, p, precision=p)]

    def compiler(self, row: Mapping[str, Any]) -> RecordLinks:
        return [link for c in ("none", row["compiler"]) for link in self.case(row, c, compiler=c)]


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
