"""Command ``lint``, and published figures in reports."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config.arguments import records
from ...feature_registry import Feature

if TYPE_CHECKING:
    from ...tables.table import Table


SOURCES = (
    "folders of records or of published tables, or CSVs of runs (default: results/published of the "
    "project, and RESULTS/runs)"
)


def _lint(options: argparse.Namespace) -> None:
    from . import command

    command.make_lint(options.sources or command.sources_of(options.results), options.results)


def _written_tables() -> Sequence[Table]:
    from . import findings, published

    return published.TABLE, findings.TABLE


def _add_commands(commands: Any) -> None:
    linting = commands.add_parser("lint", help="check results, ours or published, for errors")
    linting.add_argument("--sources", type=records, nargs="+", help=SOURCES)
    linting.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    linting.set_defaults(command=_lint)


FEATURE = Feature(
    add_commands=_add_commands,
    table_names=("lint", "published"),
    written_tables=_written_tables,
    record_files=("published.csv",),
)
