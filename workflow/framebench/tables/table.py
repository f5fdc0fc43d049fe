"""Declaration of a table: its columns, its rows as a function of the inputs, its place on the page.

This module needs no pandas, because plans use only names and titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from core import axes

from ..cases.conditions import KEYS
from ..records.device_peaks import PeakFlopsLookup
from ..records.fields.flags import OWN
from ..records.run import Run
from ..records.searches import Result
from ..records.sidecars.expected import ExpectedCase
from ..records.verifications import VerificationResult
from .columns import Column, Row
from .datasheets import Datasheet
from .formatting import Cell
from .results import CaseResult, CaseResults

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
#: Fields of a case with values of another case.
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Inputs:
    """Inputs of all tables.

    ``cases``: of steps; ``others``: of other benchmarks. ``models``: model config by name.
    ``expected``: cases of the measured suites, including those without records; ``left_out``: those
    that their plans leave out."""

    cases: CaseResults
    verification_results: Sequence[VerificationResult] = ()
    peaks: PeakFlopsLookup = field(default_factory=PeakFlopsLookup)
    searches: Sequence[Result] = ()
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    datasheets: Sequence[Datasheet] = ()
    others: CaseResults = field(default_factory=dict)
    expected: Sequence[ExpectedCase] = ()
    left_out: Sequence[ExpectedCase] = ()

    @cached_property
    def own_models(self) -> frozenset[str]:
        """Names of the users' own models among the cases."""
        runs = (run for result in self.cases.values() for run in result.runs)
        return frozenset(
            run.case.model for run in runs if any(flag.name == OWN for flag in run.flags)
        )

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs of all cases as a data frame, once each regardless of their metrics."""
        from .case_frame import run_frame  # slow to import, and plans make no rows

        cases = (*self.cases.values(), *self.others.values())
        return run_frame({id(run): run for result in cases for run in result.runs}.values())

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The cases of steps as a data frame."""
        from .case_frame import case_frame  # as above

        return case_frame(self.cases.values())

    def cases_with(self, cells: Callable[[CaseResult], Row | None]) -> pd.DataFrame:
        """Return the cases of steps with further columns, without those whose cells are None."""
        from .case_frame import with_cells  # as above

        found = {at: cells(result) for at, result in self.frame["result"].items()}
        kept = {at: row for at, row in found.items() if row is not None}
        return with_cells(self.frame.loc[[*kept]], kept.values())

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def once(self, compute: Callable[[Inputs], T]) -> T:
        """Return what a function makes of these inputs. It is computed once."""
        if compute not in self._made:
            self._made[compute] = compute(self)
        result: T = self._made[compute]
        return result

    def made(self, table: Table) -> pd.DataFrame:
        """Return the data frame of a table. It is computed once."""
        from .case_frame import typed  # as above

        if table.name not in self._made:
            self._made[table.name] = typed(table.name, table.columns, table.rows(self))
        made: pd.DataFrame = self._made[table.name]
        return made


@dataclass(frozen=True)
class Overview:
    """Rows that readers see in place of a table's rows; the CSV has all rows."""

    columns: tuple[Column, ...]
    rows: Callable[[Sequence[Row]], Iterable[Row]]
    #: Columns that identify a row.
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pivot:
    """Tables of nodes and devices by framework, in Markdown before the rows.

    There is one per model, mode, precision and batch. ``batch``: column of the batch; ``heading``:
    its name in headings."""

    batch: str
    heading: str


@dataclass(frozen=True)
class Crosstab:
    """Rows of a table with the values of one column across.

    ``settings``: a row of the table by column heading. ``rows``: cell by row heading and column
    heading; None if nothing was tried. ``down``: meaning of the row headings."""

    title: str
    settings: Mapping[str, Row]
    rows: Mapping[str, Mapping[str, Cell | None]]
    down: str = "framework"


@dataclass(frozen=True)
class Drawing:
    """A plot before the rows on the page.

    ``name``: key of ``report.drawings.DRAWERS``. ``words``: subject of the plot, if the name does
    not determine it."""

    name: str
    words: str = ""


#: Axes that readers can filter by; ``devices`` is nodes and devices per node.
AXES = (
    *("framework", "model", "mode", "precision", "devices", "compiler"),
    *(axis.name for axis in axes.further()),
)


@dataclass(frozen=True)
class Table:
    """A table as file, section of the page and, if ``always``, part of Snakemake's report.

    ``group``: heading in Snakemake's report; tables of a group are adjacent on the page.
    ``heading``: heading of the page's section, which tables may share."""

    name: str
    title: str
    explanation: str
    columns: tuple[Column, ...]
    #: Data frame or rows with the values that columns do not compute from a row's ``result``.
    #: Tables that need more than records have none here.
    rows: Callable[[Inputs], pd.DataFrame | Iterable[Row]] = lambda inputs: ()
    group: str = ""
    heading: str = ""
    always: bool = False  # written even without rows
    needs: str = ""  # shown on the page if this column has a value
    absent: str = ""  # text of the page without rows; "" for no section
    empty: str = "There is no such case among these runs."  # text of the file without rows
    sectioned: bool = False  # Markdown has a section per model and mode
    overview: Overview | None = None
    #: Crosstabs that readers see in place of the rows.
    crosstabs: Callable[[Sequence[Row]], Sequence[Crosstab]] | None = None
    #: Crosstabs of the page, where readers filter rows; by default ``crosstabs``.
    of_page: Callable[[Sequence[Row]], Sequence[Crosstab]] | None = None
    pivot: Pivot | None = None
    drawings: tuple[Drawing, ...] = ()
    #: Paragraphs about all rows, above them.
    lead: Callable[[Sequence[Row]], Iterable[str]] | None = None
    #: Columns that identify a row.
    keys: tuple[str, ...] = (*KEYS, "unit")
    #: First columns of the page; by default the verdict and columns with flags.
    answers: tuple[str, ...] = ()
    #: Sort column of the page: numbers descending, text ascending; "-" in front reverses. By
    #: default rows keep their order.
    order: str = ""
    #: Axes that filter the rows.
    axes: tuple[str, ...] = AXES
    #: Cases behind a row: label, and fields that differ from the row's.
    behind: Callable[[Row], Sequence[tuple[str, Fields]]] = lambda row: [("", {})]
    #: Runs behind a row of another benchmark than steps.
    runs: Callable[[Row], Sequence[Run]] | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def has_records(self) -> bool:
        """Return whether rows have records behind them."""
        return self.runs is not None or {*KEYS, "flags"} <= {*self.names}

    @cached_property
    def answering(self) -> tuple[str, ...]:
        """First columns of the page: ``answers`` or their default."""
        verdicts = [name for name in ("verdict",) if name in self.names]
        marked = [column.name for column in self.columns if column.flagged]
        return self.answers or (*verdicts, *marked)

    @property
    def anchor(self) -> str:
        """Anchor of the table's section on the page."""
        return (self.heading or self.title).lower().replace(" ", "-")
