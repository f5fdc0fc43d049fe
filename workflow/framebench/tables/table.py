"""What a table is: its columns, its rows as a function of what was read, and its place in the
report. Nothing here needs pandas: a plan asks for names and titles alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from core import axes

from ..cases.conditions import KEYS
from ..records.device_peaks import PeakFlopsLookup
from ..records.run import Run
from ..records.searches import Result
from ..records.sidecars.assumptions import NONE, Assumptions
from ..records.sidecars.expected import ExpectedCase
from ..records.verifications import VerificationResult
from .cells import Cell
from .columns import Column, Row
from .datasheets import Datasheet
from .nodes.judging import JudgedNode
from .printed_cells import Printed
from .results import CaseResults

#: Some fields of a case, and what they are at another one.
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Inputs:
    """All that tables are made of. ``cases``: of steps; ``others``: of other kinds of measurement.
    ``models``: facts by name; ``nodes``: those that runs were asked for by name, judged;
    ``printed``: cells of published tables; ``expected``: cases of the suites that were measured,
    with those that have no record yet."""

    cases: CaseResults
    verification_results: Sequence[VerificationResult] = ()
    peaks: PeakFlopsLookup = field(default_factory=PeakFlopsLookup)
    searches: Sequence[Result] = ()
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    datasheets: Sequence[Datasheet] = ()
    others: CaseResults = field(default_factory=dict)
    assumptions: Assumptions = NONE
    nodes: Sequence[JudgedNode] = ()
    printed: Sequence[Printed] = ()
    expected: Sequence[ExpectedCase] = ()


@dataclass(frozen=True)
class Overview:
    """What people see in the place of a table's own rows, all of which are in its CSV."""

    columns: tuple[Column, ...]
    rows: Callable[[Sequence[Row]], Iterable[Row]]
    #: Of its columns, those that tell its rows apart.
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pivot:
    """Tables of nodes and devices by framework, one for each model, mode, precision and batch, in
    Markdown before the rows. ``batch``: the column of the batch, and how a heading calls it."""

    batch: str
    heading: str


@dataclass(frozen=True)
class Crosstab:
    """Rows of a table with one column across. ``settings``: by the heading of each column, a row
    of the table that is of it. ``rows``: by heading of the row, a cell for each setting; None where
    nothing was tried. ``down``: what the headings of the rows are."""

    title: str
    settings: Mapping[str, Row]
    rows: Mapping[str, Mapping[str, Cell | None]]
    down: str = "framework"


@dataclass(frozen=True)
class PublishedLayout:
    """Rows as somebody else lays them out, for people. ``header``: its columns; ``rows``: what each
    is of, and its cells by column; ``notes``: what must be known of them."""

    title: str
    header: Sequence[str]
    rows: Sequence[tuple[Row, Mapping[str, Cell]]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Drawing:
    """A plot before the rows on the page. ``name``: of those in ``report.drawings``; ``words``:
    what it is of, where the name does not say."""

    name: str
    words: str = ""


#: What of a case a reader of the page may ask for; ``devices`` is nodes and devices per node.
AXES = (
    *("framework", "model", "mode", "precision", "devices", "compiler"),
    *(axis.name for axis in axes.further()),
)


def _case_of(row: Row) -> list[tuple[str, Fields]]:
    return [("", {})]


def _no_rows(inputs: Inputs) -> Iterable[Row]:
    return ()


@dataclass(frozen=True)
class Table:
    """A table that is a file, a part of the page and, if it is ``always`` there, of Snakemake's
    report.

    ``group``: what it stands under in Snakemake's report; the page has the tables of a group one
    after the other. ``heading``: of its section of the page, which tables may share."""

    name: str
    title: str
    explanation: str
    columns: tuple[Column, ...]
    #: Of COLUMNS; a table that is not made of records alone has none here.
    rows: Callable[[Inputs], Iterable[Row]] = _no_rows
    group: str = ""
    heading: str = ""
    always: bool = False  # a file even without a row; else only with one
    needs: str = ""  # the page has it where this column has a value
    absent: str = ""  # what the page says where there is no row; "" is no section
    empty: str = "There is no such case among these runs."  # what its file says without rows
    sectioned: bool = False  # Markdown has a section for each model and mode
    overview: Overview | None = None
    #: What people see in the place of its rows.
    crosstabs: Callable[[Sequence[Row]], Sequence[Crosstab]] | None = None
    #: The same on the page, where the reader chooses among rows; by default the same.
    of_page: Callable[[Sequence[Row]], Sequence[Crosstab]] | None = None
    #: The same.
    layouts: Callable[[Sequence[Row]], Sequence[PublishedLayout]] | None = None
    pivot: Pivot | None = None
    drawings: tuple[Drawing, ...] = ()
    #: Paragraphs about all rows.
    lead: Callable[[Sequence[Row]], Iterable[str]] | None = None
    #: What says what the figures of a row are of.
    keys: tuple[str, ...] = (*KEYS, "unit")
    #: What people ask the table for, the first columns of the page; by default the verdict, and
    #: what carries quality flags.
    answers: tuple[str, ...] = ()
    #: The column that the page is sorted by, numbers from the largest and words from a to z, with
    #: "-" before it the other way round; by default its rows have an order of their own.
    order: str = ""
    #: What the reader's choice among AXES may ask of a row.
    axes: tuple[str, ...] = AXES
    #: The cases behind a row: what each is called there, and how it differs from the row's.
    behind: Callable[[Row], Sequence[tuple[str, Fields]]] = _case_of
    #: The runs behind a row of another kind than steps.
    runs: Callable[[Row], Sequence[Run]] | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def has_records(self) -> bool:
        """Whether records stand behind each row."""
        return self.runs is not None or {*KEYS, "marks"} <= {*self.names}

    @cached_property
    def answering(self) -> tuple[str, ...]:
        """``answers``, or what they are by default."""
        verdicts = [name for name in ("verdict",) if name in self.names]
        marked = [column.name for column in self.columns if column.marked]
        return self.answers or (*verdicts, *marked)

    @property
    def anchor(self) -> str:
        """Of its section of the page."""
        return (self.heading or self.title).lower().replace(" ", "-")
