"""What a format of another tool declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..cases.conditions import Key
from ..records import tidy_csv
from ..tables.results import CaseResult
from .rows import ImportedFigure
from .source import ImportedFile


@dataclass(frozen=True)
class Results:
    """What is exported: the cases of a set of records, judged, and the name of each. Metrics of a
    case have one name."""

    cases: Sequence[CaseResult]
    names: Mapping[Key, str]

    def name(self, case: CaseResult) -> str:
        return self.names[case.key]

    def rows(self) -> Iterator[dict[str, str]]:
        """Those of the table of runs, one for each repeat of each case."""
        for case in self.cases:
            for run in case.runs:
                if row := tidy_csv.row_of(run, case.key, case.marks):
                    yield row


@dataclass(frozen=True)
class ExportedFile:
    """A file's content, and in words what of the results is not in it. ``is_empty``: none of the
    results is in it."""

    content: str | bytes
    left_out: Sequence[str] = ()
    is_empty: bool = False


@dataclass(frozen=True)
class Format:
    """``suffix``: of the files that are written; ``others``: of further files that are read, in a
    folder. ``tool``: whose it is, in words. ``holds``: what of results is written in it;
    ``marks``: what becomes of quality flags; ``lost``: what it has no place for. ``taken`` and
    ``not_taken``: which figures of a file are read; ``missing``: what its files do not say of
    a case.

    ``write`` raises OSError where a library is missing; ``read`` raises Refused."""

    name: str
    suffix: str
    tool: str
    write: Callable[[Results], ExportedFile] | None = None
    read: Callable[[ImportedFile], Iterable[ImportedFigure]] | None = None
    holds: str = ""
    marks: str = ""
    lost: str = ""
    taken: str = ""
    not_taken: str = ""
    missing: str = ""
    others: Sequence[str] = ()
