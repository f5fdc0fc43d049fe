"""Published figures in reports, and the command ``layout``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...feature_registry import Feature


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
    tables={"published": "audit.published.TABLE"},
    record_files=("published.csv",),
)
