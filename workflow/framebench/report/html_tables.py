"""Tables of the page: arrangement and row anchors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..tables import view
from ..tables.columns import NUMBER, TEXT, Column
from ..tables.formatting import DASH, Cell
from ..tables.table import Crosstab, Table
from ..tables.view import Arrangement, Field, Shown, TableView

#: Column of tables of ratios.
RATIO = "speedup"


@dataclass(frozen=True)
class PageTable:
    """A table of the page, whose rows its script draws.

    ``has_records``: whether rows unfold to records. ``ids``: anchor of each row, the same for every
    set of records. ``without_ratio``: number of rows that are only in the file, because they have
    no ratio."""

    arrangement: Arrangement
    has_records: bool
    ids: Sequence[str]
    without_ratio: int = 0

    @property
    def view(self) -> TableView:
        return self.arrangement.view


def of_frame(table: Table, frame: pd.DataFrame) -> PageTable:
    """Return a table as the page shows it: of ratios, the rows that have one."""
    with_ratio = frame[frame[RATIO].notna()] if RATIO in frame else frame
    seen = view.view_table(table, with_ratio)
    arranged = _crossed(seen) if seen.crosstabs else view.arrange(seen)
    ids = _ids([[row.get(name) for name in table.keys] for row in arranged.view.rows])
    has_records = table.has_records and not seen.crosstabs
    return PageTable(arranged, has_records, ids, len(frame) - len(with_ratio))


def _ids(keys: Sequence[Sequence[Any]]) -> list[str]:
    """Return a short id per key; a number is appended to repeated ids."""
    names = [_digest(key) for key in keys]
    met: Counter[str] = Counter()
    results = []
    for name in names:
        met[name] += 1
        results.append(name if met[name] == 1 else f"{name}-{met[name]}")
    return results


def _digest(values: Iterable[Any]) -> str:
    """Return the first 8 digits of a SHA-256 hash of the values."""
    text = json.dumps(list(map(str, values)))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# ---- a table with frameworks across -------------------------------------------------------------


def _crossed(seen: TableView) -> Arrangement:
    """Return crosstabs as one table: settings down, frameworks across.

    Frameworks with the fewest figures are unfolded if the page lacks room."""
    names = list(dict.fromkeys(name for crosstab in seen.of_page for name in crosstab.rows))
    places = [(crosstab, setting) for crosstab in seen.of_page for setting in crosstab.settings]
    fields = [
        Field(
            Column(name, NUMBER, "", title=name),
            "number",
            [_cell(crosstab, name, setting) for crosstab, setting in places],
        )
        for name in names
    ]
    by_figures = sorted(fields, key=lambda field: sum(cell.is_missing for cell in field.cells))
    room = view.MOST - 2
    kept = [field for field in fields if field in by_figures[:room]]
    texts = {
        "measured": [crosstab.title for crosstab, _ in places],
        "setting": [setting for _, setting in places],
    }
    keys = [
        Field(Column(title, TEXT, "", title=title), "", [Cell(text, "case") for text in some])
        for title, some in texts.items()
    ]
    rest = [field for field in fields if field not in kept]
    settings = [crosstab.settings[setting] for crosstab, setting in places]
    whole = replace(seen, rows=settings, fields=[*keys, *fields])
    shown = [Shown([field], is_answer=False) for field in keys]
    shown += [Shown([field], is_answer=True) for field in kept]
    return Arrangement(whole, shown, rest)


def _cell(crosstab: Crosstab, name: str, setting: str) -> Cell:
    """Return the cell of a framework at a setting; "not run" if there is none."""
    cell = crosstab.rows.get(name, {}).get(setting)
    return Cell(DASH, "number missing", "not run") if cell is None else _in_words(cell)


def _in_words(cell: Cell) -> Cell:
    """Return a missing figure's cell as a dash with its status.

    The reason is listed under Failures."""
    if "missing" not in cell.kind.split():
        return cell
    return cell._replace(text=DASH, kind="number missing", why=cell.text)
