"""Published figures in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...feature_registry import Feature

if TYPE_CHECKING:
    from ...tables.table import Table


def _written_tables() -> Sequence[Table]:
    from . import published

    return (published.TABLE,)


FEATURE = Feature(
    table_names=("published",), written_tables=_written_tables, record_files=("published.csv",)
)
