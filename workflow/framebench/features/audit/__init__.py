"""Published figures in reports, and the command ``layout``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...feature_registry import Feature

if TYPE_CHECKING:
    import pandas as pd

    from ...tables.table import Inputs, Table


def _compare(records: Path, inputs: Inputs) -> Mapping[Table, pd.DataFrame]:
    """Return the published figures next to the runs of a report; {} without either. ``records``:
    folder of the records."""
    from . import published

    file = records / published.PUBLISHED_NAME
    if not (inputs.cases or inputs.others) or not file.is_file():
        return {}
    return {published.TABLE: published.compare_published(inputs.cases, file)}


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
    tables=("audit.published.TABLE",),
    record_files=("published.csv",),
    report_tables=_compare,
)
