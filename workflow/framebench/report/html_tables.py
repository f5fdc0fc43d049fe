"""Tables of the page: arrangement and row anchors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..tables import view
from ..tables.table import Table
from ..tables.view import Arrangement, TableView

#: Column of tables of ratios.
RATIO = "speedup"


@dataclass(frozen=True)
class PageTable:
    """A table of the page, whose rows its script draws.

    ``has_records``: whether rows unfold to records. ``ids``: anchor of each row, the same for every
    set of records. ``without_ratio``: number of rows that are only in the file, because they have
    no ratio."""

    view: TableView
    arrangement: Arrangement
    has_records: bool
    ids: Sequence[str]
    without_ratio: int = 0


def of_frame(table: Table, frame: pd.DataFrame) -> PageTable:
    """Return a table as the page shows it: of ratios, the rows that have one."""
    with_ratio = frame[frame[RATIO].notna()] if RATIO in frame else frame
    seen = view.view_table(table, with_ratio)
    ids = _ids([[row.get(name) for name in table.keys] for row in seen.rows])
    has_records = table.has_records and not table.crosstab
    return PageTable(seen, view.arrange(seen), has_records, ids, len(frame) - len(with_ratio))


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
