"""Commands ``gate`` and ``bisect``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...feature_registry import Feature, Program

if TYPE_CHECKING:
    from ...tables.table import Table


def _written_tables() -> Sequence[Table]:
    from . import decisions

    return (decisions.TABLE,)


FEATURE = Feature(
    programs={
        "bisect": Program("find the version that changed a figure", "gate.bisect"),
        "gate": Program("measure two sides in pairs, and decide", "gate.command"),
    },
    table_names=("gate",),
    written_tables=_written_tables,
)
