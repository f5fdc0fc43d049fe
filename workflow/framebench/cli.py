"""Commands of Framebench. ``--kinds FOLDER`` before a command adds your own axes."""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path

from . import feature_registry as features
from .commands import reporting, upkeep
from .config.arguments import records, suite
from .config.validation import ConfigError
from .config.values import RecordSource
from .records.run import RecordsError

SIDE = "folder of records or CSV, or FOLDER@VARIANT"
PINS = "packages to add to NAME's, as packages in the configuration: written to --environments"
LEAVE = "tables that are made already"
BEFORE_ROUND = "leave runs.csv, which is made once all rounds of a call are over"
VARIANTS = "further suites whose variants name environment files: their environments stay"


def side(text: str) -> RecordSource:
    """Parse one side of a comparison."""
    source = RecordSource.parse(text)
    return replace(source, path=records(str(source.path)))


def _compare(options: argparse.Namespace) -> None:
    from .commands import sets  # imports NumPy, which not every command needs

    sets.make_comparison(options.base, options.candidate, options.results)


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status."""
    try:
        return _run(arguments)
    except SystemExit as ended:  # argparse has printed its message or help
        return int(ended.code or 0)


def _run(arguments: list[str]) -> int:
    """Run a command; for one that fails, return its status after one clear message on stderr."""
    parser = argparse.ArgumentParser(
        prog="framebench",
        description=__doc__,
    )
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("report", help="tables and report from records")
    making.add_argument("--records", type=records, required=True, help="folder of records, or CSV")
    making.add_argument("--results", type=Path, required=True, help="folder to write to")
    making.add_argument("--leave", nargs="*", default=[], help=LEAVE)
    making.add_argument("--before-round", action="store_true", help=BEFORE_ROUND)
    making.set_defaults(
        command=lambda options: reporting.make_report(
            options.records, options.results, options.leave, options.before_round
        )
    )
    collecting = commands.add_parser("runs", help="a CSV with a row per run")
    collecting.add_argument("--records", type=records, required=True, help="folder of records")
    collecting.add_argument("--results", type=Path, required=True, help="folder to write to")
    collecting.set_defaults(
        command=lambda options: reporting.write_runs(options.records, options.results)
    )
    tabulating = commands.add_parser("tables", help="single tables")
    tabulating.add_argument("names", nargs="+", help="names of tables")
    tabulating.add_argument("--records", type=records, required=True, help="folder of records")
    tabulating.add_argument("--results", type=Path, required=True, help="folder to write to")
    tabulating.set_defaults(
        command=lambda options: reporting.write_tables(
            options.names, options.records, options.results
        )
    )
    verifying = commands.add_parser(
        "verification", help="write the verification table, and update tables and report"
    )
    verifying.add_argument("--records", type=records, required=True, help="folder of records")
    verifying.add_argument("--results", type=Path, required=True, help="folder to write to")
    verifying.set_defaults(
        command=lambda options: reporting.make_verification(options.records, options.results)
    )
    comparing = commands.add_parser("compare", help="two sets of records, case by case")
    comparing.add_argument("--base", type=side, required=True, help=SIDE)
    comparing.add_argument("--candidate", type=side, required=True, help=SIDE)
    comparing.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    comparing.set_defaults(command=_compare)
    showing = commands.add_parser("overview", help="all frameworks side by side, in Markdown")
    showing.add_argument("--records", type=records, required=True, help="folder of records, or CSV")
    showing.add_argument("--into", type=Path, help="file with <!-- overview --> and its end")
    showing.set_defaults(
        command=lambda options: reporting.write_overview(options.records, options.into)
    )
    locking = commands.add_parser("hashes", help="write envs/NAME.hashes.txt from envs/NAME.yaml")
    locking.add_argument("names", nargs="*", help="NAME, or FILE.yaml (default: all in envs/)")
    locking.add_argument("--with", dest="pins", nargs="+", default=[], metavar="PIN", help=PINS)
    locking.add_argument("--environments", type=Path, default=Path(".venvs"), help="for --with")
    locking.set_defaults(
        command=lambda options: upkeep.make_hashes(
            options.names, options.pins, options.environments
        )
    )
    cleaning = commands.add_parser("clean-environments", help="remove what no file makes any more")
    cleaning.add_argument("--environments", type=Path, default=Path(".venvs"), help="their folder")
    cleaning.add_argument("--suites", type=suite, nargs="+", default=[], help=VARIANTS)
    cleaning.set_defaults(
        command=lambda options: upkeep.clean(options.environments, options.suites)
    )
    explaining = commands.add_parser("columns", help="what the columns of the tables mean")
    explaining.set_defaults(command=lambda options: upkeep.print_columns())
    for feature in features.known():
        feature.add_commands(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options) or 0)
    except (
        ConfigError,
        RecordsError,
        reporting.Disagreement,
    ) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"framebench: cannot write: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
