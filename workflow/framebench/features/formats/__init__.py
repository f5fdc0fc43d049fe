"""Commands ``export`` and ``import``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config.validation import records
from ...feature_registry import Feature


def _export(options: argparse.Namespace) -> None:
    from ...config.validation import ConfigError, RecordSource
    from ...tables.results import grouped
    from . import file_formats

    file_formats.writer(options.format)  # an unknown format is refused before any record is read
    source = options.records or options.results / "runs"
    if options.to and source.resolve() in (options.to.resolve(), *options.to.resolve().parents):
        raise ConfigError(f"--to: found {options.to}, a file of the records; allowed: another file")
    cases = grouped(RecordSource(source, ""))
    print("\n".join(file_formats.export_cases(cases, options.format, options.to, options.results)))


def _import(options: argparse.Namespace) -> None:
    from . import file_formats

    print("\n".join(file_formats.import_files(options.format, options.source, options.results)))


def _add_commands(commands: Any) -> None:
    exporting = commands.add_parser("export", help="records in a format of another tool")
    exporting.add_argument(
        "--records", type=records, help="folder of records, or CSV (default: RESULTS/runs)"
    )
    exporting.add_argument("--format", required=True, help="see docs/formats.md")
    exporting.add_argument("--to", type=Path, help="file to write (default: RESULTS/export/FORMAT)")
    exporting.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    exporting.set_defaults(command=_export)
    importing = commands.add_parser("import", help="files of another tool as a set of records")
    importing.add_argument("--format", required=True, help="see docs/formats.md")
    importing.add_argument("--from", type=Path, required=True, dest="source", help="file or folder")
    importing.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    importing.set_defaults(command=_import)


FEATURE = Feature(add_commands=_add_commands)
