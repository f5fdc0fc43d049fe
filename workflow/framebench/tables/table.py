"""Declaration of a table: its columns, its rows as a function of the inputs, its place on the page.

Tables made from records are declared in tables.yaml, each with a function in ``declared``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ..cases.conditions import KEYS
from ..config.keys import read_mapping
from ..records.device_peaks import PeakFlopsLookup
from ..records.flags import OWN
from ..records.record_sets import SearchResult
from ..records.run import Run
from ..records.sidecars import ExpectedCase
from ..records.verifications import VerificationResult
from .columns import COLUMNS, Column, Row, declarations, names_in, own_columns, with_settings
from .results import CaseResult, CaseResults, case_frame, with_cells

#: Fields in which another case differs, with its values.
Fields = Mapping[str, Any]


@dataclass(frozen=True, eq=False)  # compared by identity, so that results can be cached
class Inputs:
    """Inputs of all tables.

    ``cases``: cases of steps; ``others``: cases of other benchmarks. ``models``: model config by
    name. ``expected``: cases of the measured suites, including those without records; ``left_out``:
    cases that the plans of these suites leave out."""

    cases: CaseResults
    verification_results: Sequence[VerificationResult] = ()
    peaks: PeakFlopsLookup = field(default_factory=PeakFlopsLookup)
    searches: Sequence[SearchResult] = ()
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
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
    def results(self) -> list[CaseResult]:
        """The cases of steps. Data frames of cases are indexed by positions in this list."""
        return [*self.cases.values()]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The cases of steps as a data frame."""
        return case_frame(self.results)

    def cases_with(self, cells: Callable[[CaseResult], Row | None]) -> pd.DataFrame:
        """Return the cases of steps with further columns, without those whose cells are None."""
        return with_cells(self.frame, map(cells, self.results))

    def frame_of(self, table: Table) -> pd.DataFrame:
        """Return the data frame of a table."""
        return table.frame(table.rows(self))


#: Axes that readers can filter by; ``devices`` is nodes and devices per node.
AXES = ("framework", "model", "mode", "precision", "devices", "compiler")


@dataclass(frozen=True)
class Table:
    """A table as file, section of the page and, if ``always``, part of Snakemake's report.

    ``group``: heading in Snakemake's report; tables of a group are adjacent on the page.
    ``heading``: heading of the page's section, which tables may share."""

    name: str
    title: str
    explanation: str
    columns: tuple[Column, ...]
    #: Function that makes the data frame or rows; further columns are dropped. Tables that need
    #: more than records have no such function.
    rows: Callable[[Inputs], pd.DataFrame | Iterable[Row]] = lambda inputs: ()
    group: str = ""
    heading: str = ""
    always: bool = False  # written even without rows
    needs: str = ""  # pandas query; the page shows the table if a row fulfils it
    empty: str = "There is no such case among these runs."  # text of the file without rows
    #: Columns and rows that the page shows in place of all; the CSV has all.
    overview: Callable[[Sequence[Row]], tuple[Sequence[Column], Sequence[Row]]] | None = None
    shown: tuple[Column, ...] = ()  # columns of the overview, if they are fixed
    crosstab: bool = False  # the overview has frameworks across
    #: Plot before the rows on the page, by its name in ``report.html_report.DRAWERS``; and its
    #: subject, if the name does not determine it.
    drawing: str = ""
    drawing_of: str = ""
    #: Paragraphs about all rows, shown above the table.
    lead: Callable[[Sequence[Row]], Iterable[str]] | None = None
    #: Columns that identify a row, as readers see it.
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
    #: Runs behind a row of a benchmark that times no steps.
    runs: Callable[[Row], Sequence[Run]] | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def frame(self, rows: pd.DataFrame | Iterable[Row]) -> pd.DataFrame:
        """Return a data frame with the table's columns in their types."""
        found = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows), dtype=object)
        found = found.reset_index(drop=True) if len(found) else found.reindex(columns=self.names)
        return found[[*self.names]].astype({column.name: column.type for column in self.columns})

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


def frame_rows(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame with Python's own types, and None for any missing value."""
    columns = {str(name): _values(values) for name, values in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(tables: Mapping[Table, pd.DataFrame], table: Table) -> list[Row]:
    """Return the rows of a table; [] if it is not among ``tables``."""
    return frame_rows(tables[table]) if table in tables else []


def _values(series: pd.Series[Any]) -> list[Any]:
    values: list[Any] = series.tolist()
    if series.dtype == "float64":
        return [value if math.isfinite(value) else None for value in values]
    return [None if gone else value for value, gone in zip(values, series.isna(), strict=True)]


def declared_table(
    name: str,
    rows: Callable[[Inputs], pd.DataFrame | Iterable[Row]],
    **functions: Any,
) -> Table:
    """Return a table that tables.yaml declares, with its functions.

    Raises ValueError for a crosstab without a function ``overview``."""
    if declarations()[name].get("crosstab") and "overview" not in functions:
        raise ValueError(f"tables.yaml: {name}: found crosstab; allowed: only with overview=..")
    return _table(name, {**declarations()[name], **functions, "rows": rows}, COLUMNS)


def tables_in(file: Path, beside: Iterable[Column] = ()) -> dict[str, Table]:
    """Return the tables of a file, without functions, by name.

    It has ``columns``, as columns.yaml, and ``tables``, as tables.yaml. ``beside``: further columns
    that the tables may have."""
    content = read_mapping(file)
    others = {column.name: column for column in beside}
    known = {**COLUMNS, **others, **own_columns(content["columns"])}
    return {name: _table(name, given, known) for name, given in content["tables"].items()}


def _table(name: str, given: Mapping[str, Any], known: Mapping[str, Column]) -> Table:
    settings = dict(given)
    for key in ("columns", "shown"):
        settings[key] = _columns(settings.get(key, ()), known)
    for key in ("keys", "answers", "axes"):
        if key in settings:
            settings[key] = tuple(names_in(settings[key]))
    return Table(name, **settings)


def _columns(
    listed: Iterable[str | Mapping[str, Mapping[str, Any]]], known: Mapping[str, Column]
) -> tuple[Column, ...]:
    """Return columns of a table by their names, each with changed settings if there are any."""
    columns: list[Column] = []
    for entry in listed:
        if isinstance(entry, str):
            columns += [known[name] for name in names_in([entry])]
        else:
            columns += [with_settings(known[name], changed) for name, changed in entry.items()]
    return tuple(columns)
