"""Command ``history``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...feature_registry import Feature

if TYPE_CHECKING:
    from ...tables.table import Table


ORDERS = ("date", "version", "name")
SETS = "folders of results, CSVs of runs, or a folder of these"


def _make_history(options: argparse.Namespace) -> None:
    from . import command

    command.make(options.sets, options.by, options.results)


def _written_tables() -> Sequence[Table]:
    from . import trends

    return trends.POINTS, trends.CHANGES


def _add_commands(commands: Any) -> None:
    trending = commands.add_parser("history", help="any number of result sets in their order")
    trending.add_argument("--sets", type=Path, nargs="+", required=True, help=SETS)
    trending.add_argument("--by", choices=ORDERS, default=ORDERS[0], help="what orders them")
    trending.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    trending.set_defaults(command=_make_history)


FEATURE = Feature(
    add_commands=_add_commands,
    table_names=("history", "changes"),
    written_tables=_written_tables,
)
