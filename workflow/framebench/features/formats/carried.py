"""A run's row carried as text through another tool's format, so that import restores the case."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...cases.conditions import Key
from ...records import tidy_csv
from ...records.run import Run
from .json_places import Keys
from .rows import ImportedFigure
from .source import ImportedFile

#: Key of the row in formats that allow foreign keys.
KEY = "framebench"


def text_of(run: Run, key: Key, flags: Iterable[str]) -> str:
    """Return the row of the tidy CSV for this metric of a run, as one line of JSON."""
    row = tidy_csv.row_of(run, key, flags) or {}
    return json.dumps({name: cell for name, cell in row.items() if cell}, ensure_ascii=False)


def figure_of(text: object, source: ImportedFile, location: int | Keys) -> ImportedFigure:
    """Return the figure of a row that :func:`text_of` wrote.

    ``location``: line, or keys of the row, as for :meth:`ImportedFile.refuse`. Raises FormatError
    for text that is no such row."""
    columns = (*tidy_csv.COLUMNS, *tidy_csv.OF_METRIC, *tidy_csv.OPTIONAL_COLUMNS)
    try:
        row = json.loads(str(text))
        if not isinstance(row, dict) or {*row} - {*columns}:
            raise ValueError("is no row of a run")
        full = {name: str(row.get(name, "")) for name in columns if name != "throughput"}
        return ImportedFigure(tidy_csv.run_of(full, ""))
    except ValueError as error:
        source.refuse(f"{KEY}: {error}", location)
