"""Commands of Framebench."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from . import PROJECT
from . import feature_registry as features
from .commands import reporting
from .config import values
from .config.validation import ConfigError
from .config.values import records
from .records.run import RecordsError

SIDE = "folder of records or CSV, or FOLDER@VARIANT"
PINS = (
    "packages to add to those of NAME, as under packages in the configuration; writes the file to "
    "--environments"
)
VERIFICATION = "write the verification table, and update tables and report"
LEAVE = "tables that exist already"
BEFORE_ROUND = "leave runs.csv unchanged, which is made after the last round of a call"


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status."""
    try:
        return _run(arguments)
    except SystemExit as ended:  # argparse has printed its message or help
        return int(ended.code or 0)


def _run(arguments: list[str]) -> int:
    """Run a command; for one that fails, return its status after one clear message on stderr."""
    parser = argparse.ArgumentParser(prog="framebench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    of_records = argparse.ArgumentParser(add_help=False)
    of_records.add_argument("--records", type=records, required=True, help="folder, or CSV")
    of_records.add_argument("--results", type=Path, required=True, help="folder to write to")
    both = [of_records]
    making = commands.add_parser("report", parents=both, help="tables and report from records")
    making.add_argument("--leave", nargs="*", default=[], help=LEAVE)
    making.add_argument("--before-round", action="store_true", help=BEFORE_ROUND)
    making.set_defaults(
        command=lambda given: reporting.make_report(
            given.records, given.results, given.leave, given.before_round
        )
    )
    collecting = commands.add_parser("runs", parents=both, help="a CSV with a row per run")
    collecting.set_defaults(
        command=lambda given: reporting.write_runs(given.records, given.results)
    )
    tabulating = commands.add_parser("tables", parents=both, help="single tables")
    tabulating.add_argument("names", nargs="+", help="names of tables")
    tabulating.set_defaults(
        command=lambda given: reporting.write_tables(given.names, given.records, given.results)
    )
    verifying = commands.add_parser("verification", parents=both, help=VERIFICATION)
    verifying.set_defaults(
        command=lambda given: reporting.make_verification(given.records, given.results)
    )
    comparing = commands.add_parser("compare", help="two sets of records, case by case")
    side = values.argument(values.side)
    comparing.add_argument("--base", type=side, required=True, help=SIDE)
    comparing.add_argument("--candidate", type=side, required=True, help=SIDE)
    comparing.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    comparing.set_defaults(
        command=lambda given: reporting.make_comparison(given.base, given.candidate, given.results)
    )
    locking = commands.add_parser("hashes", help="write envs/NAME.hashes.txt from envs/NAME.yaml")
    locking.add_argument("names", nargs="*", help="NAME, or FILE.yaml (default: all in envs/)")
    locking.add_argument("--with", dest="pins", nargs="+", default=[], metavar="PIN", help=PINS)
    locking.add_argument("--environments", type=Path, default=Path(".venvs"), help="for --with")
    locking.set_defaults(
        command=lambda given: _make_hashes(given.names, given.pins, given.environments)
    )
    explaining = commands.add_parser("columns", help="print the meanings of all columns")
    explaining.set_defaults(command=lambda given: _print_columns())
    for feature in features.known():
        feature.add_commands(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options) or 0)
    except (ConfigError, RecordsError, reporting.Disagreement) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"framebench: cannot write: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _make_hashes(names: Sequence[str], pins: Sequence[str], environments: Path) -> None:
    """Write the hashes of the environments ``names``; by default, of all that are not exempt.

    With ``pins``, write files that add them to ``names``, with their hashes, to the folder
    ``environments``."""
    from .environments import hashes, locking
    from .environments.venvs import files_of, read_environment_file

    for file in files_of(PROJECT / "envs", names):
        if pins:
            environment_file = read_environment_file(file, hashed=False)
            print(locking.lock_with(environment_file, pins, environments), flush=True)
        elif reason := "" if names else hashes.exemption(file):
            print(f"{file.name} is exempt: {reason}")
        else:
            print(locking.lock(file), flush=True)


def _print_columns() -> None:
    """Print the page docs/columns.md."""
    from .comparison import compare
    from .tables import frames

    written = [table for feature in features.known() for table in feature.written_tables()]
    print(frames.columns_page([*frames.known_tables().values(), compare.TABLE, *written]), end="")
