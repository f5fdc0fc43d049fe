"""Published figures next to the runs of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import published

if TYPE_CHECKING:
    import pandas as pd

    from ...records.record_sets import RecordSet
    from ...tables.table import Inputs, Table


def tables(record_set: RecordSet, inputs: Inputs) -> Mapping[Table, pd.DataFrame]:
    """Return the compared figures; {} without runs or published figures."""
    reference = record_set.root / published.PUBLISHED_NAME
    if not record_set.runs or not reference.is_file():
        return {}
    return {published.TABLE: published.compare_published(inputs.cases, reference)}
