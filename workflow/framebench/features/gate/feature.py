"""Command ``gate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...feature_registry import Feature, Program

if TYPE_CHECKING:
    from ...tables.table import Table


def _main(arguments: list[str]) -> int:
    from . import command

    return command.main(arguments)


def _written_tables() -> Sequence[Table]:
    from . import decisions

    return (decisions.TABLE,)


FEATURE = Feature(
    programs={"gate": Program("measure two sides in pairs, and decide", _main)},
    table_names=("gate",),
    written_tables=_written_tables,
)
