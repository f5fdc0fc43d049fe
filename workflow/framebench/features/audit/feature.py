"""Published figures in reports, and the command ``layout``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...feature_registry import Feature

if TYPE_CHECKING:
    from ...tables.table import Table


def _written_tables() -> Sequence[Table]:
    from . import published

    return (published.TABLE,)


def _print_layout(options: argparse.Namespace) -> None:
    from . import layouts

    print(layouts.draw(layouts.find(options.layout), options.records), end="")


def _add_commands(commands: Any) -> None:
    drawing = commands.add_parser("layout", help="results in the tables of another project")
    drawing.add_argument("layout", help="dlperf, nvidia, or a YAML file with a layout")
    drawing.add_argument(
        "--records", type=Path, default=Path("results/runs"), help="set of records"
    )
    drawing.set_defaults(command=_print_layout)


FEATURE = Feature(
    add_commands=_add_commands,
    table_names=("published",),
    written_tables=_written_tables,
    record_files=("published.csv",),
)
