"""Command ``history``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...feature_registry import Feature

ORDERS = ("date", "version", "name")
SETS = "folders of results, CSVs of runs, or a folder of these"


def _make_history(options: argparse.Namespace) -> None:
    from . import page

    page.make(options.sets, options.by, options.results)


def _add_commands(commands: Any) -> None:
    trending = commands.add_parser("history", help="figures over result sets, and their changes")
    trending.add_argument("--sets", type=Path, nargs="+", required=True, help=SETS)
    trending.add_argument("--by", choices=ORDERS, default=ORDERS[0], help="order of sets")
    trending.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    trending.set_defaults(command=_make_history)


FEATURE = Feature(
    add_commands=_add_commands, tables=("history.trends.POINTS", "history.trends.CHANGES")
)
