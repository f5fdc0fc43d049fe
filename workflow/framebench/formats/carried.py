"""What a case is, carried through a format that has room for text: read again it is the same."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..cases.conditions import Key
from ..records import tidy_csv
from ..records.run import Run
from .json_places import Keys
from .rows import ImportedFigure
from .source import ImportedFile

#: The key under which it stands, wherever a format takes keys of others.
KEY = "framebench"


def text_of(run: Run, key: Key, marks: Iterable[str]) -> str:
    """The row of the tidy CSV that this metric of a run has, as JSON in one line."""
    row = tidy_csv.row_of(run, key, marks) or {}
    return json.dumps({name: cell for name, cell in row.items() if cell}, ensure_ascii=False)


def figure_of(text: object, source: ImportedFile, place: int | Keys) -> ImportedFigure:
    """Return the figure whose row it is. ``place``: its keys, as for :meth:`Source.refuse`."""
    columns = (*tidy_csv.COLUMNS, *tidy_csv.OF_METRIC, *tidy_csv.OPTIONAL_COLUMNS)
    try:
        row = json.loads(str(text))
        if not isinstance(row, dict) or {*row} - {*columns}:
            raise ValueError("is no row of a run")
        full = {name: str(row.get(name, "")) for name in columns if name != "throughput"}
        return ImportedFigure(tidy_csv.run_of(full, ""))
    except ValueError as error:
        source.refuse(f"{KEY}: {error}", place)
