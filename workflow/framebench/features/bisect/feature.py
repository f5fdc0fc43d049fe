"""Command ``bisect``."""

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
    from . import messages

    return (messages.TABLE,)


FEATURE = Feature(
    programs={"bisect": Program("find the version that changed a figure", _main)},
    table_names=("bisect",),
    written_tables=_written_tables,
)
