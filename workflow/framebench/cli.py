"""Commands behind the rules."""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path

from .commands import exit_status, reporting, sets, upkeep
from .comparison import gate
from .config.arguments import facts, share
from .config.validation import ConfigError
from .config.values import RecordSource
from .features.archive import contents
from .records import record_sets

SIDE = "folder of records or CSV, or FOLDER@VARIANT"
FAIL_ON = "5%%, or 0.05: what a case may be slower."
STATUSES = "Ends with 3 for a regression, 4 for a lost case, 5 if nothing can be compared."
FAIL_ON_NODES = "5%%, or 0.05: what a node may be worse."
NODE_STATUSES = "Ends with 3 for a slow node, 4 for a failed one, 5 if of none it can be told."
ORDERS = ("date", "commit", "version", "name")
SOURCES = "folders of records or of published tables, or CSVs of runs"


def records(text: str) -> Path:
    """Return the path of records: ``runs`` in a results folder, else the path itself."""
    path = Path(text)
    return path / "runs" if (path / "runs").is_dir() else path


def side(text: str) -> RecordSource:
    """Parse one side of a comparison."""
    source = RecordSource.of(text)
    return replace(source, path=records(str(source.path)))


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status (:func:`exit_status.leave`)."""
    try:
        status = _run(arguments)
    except SystemExit as ended:  # argparse has printed its message or help
        status = int(ended.code or 0)
    return exit_status.leave(arguments[0] if arguments else "", status)


def _run(arguments: list[str]) -> int:
    """Run a command; for one that fails, return its status after one clear message on stderr."""
    parser = argparse.ArgumentParser(
        prog="framebench",
        description=__doc__,
        epilog="And gate and bisect: see framebench gate --help.",
    )
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("report", help="tables and report from records")
    making.add_argument("--records", type=records, required=True, help="folder of records, or CSV")
    making.add_argument("--results", type=Path, required=True, help="folder to write to")
    making.set_defaults(command=lambda given: reporting.make_report(given.records, given.results))
    verifying = commands.add_parser(
        "verification", help="write the verification table, and update tables and report"
    )
    verifying.add_argument("--records", type=records, required=True, help="folder of records")
    verifying.add_argument("--results", type=Path, required=True, help="folder to write to")
    verifying.set_defaults(
        command=lambda given: reporting.make_parity(given.records, given.results)
    )
    comparing = commands.add_parser("compare", help="two sets of records, case by case")
    comparing.add_argument("--base", type=side, required=True, help=SIDE)
    comparing.add_argument("--candidate", type=side, required=True, help=SIDE)
    comparing.add_argument("--results", type=Path, required=True, help="folder to write to")
    comparing.add_argument("--fail-on", type=share, help=f"{FAIL_ON} {STATUSES}")
    comparing.set_defaults(
        command=lambda given: sets.make_comparison(
            given.base, given.candidate, given.results, given.fail_on
        )
    )
    archiving = commands.add_parser("archive", help="results as one file to hand on")
    archiving.add_argument("--results", type=Path, required=True, help="folder of results")
    archiving.add_argument("--suite", type=Path, required=True, help="the file of its suite")
    archiving.add_argument("--environments", type=Path, nargs="*", default=[], help="their files")
    archiving.add_argument("--redact", action="store_true", help="without names")
    archiving.set_defaults(
        command=lambda given: sets.make_archive(
            contents.ArchiveSource(given.results, given.suite, given.environments), given.redact
        )
    )
    nursing = commands.add_parser("nodes", help="nodes against each other and a kept baseline")
    nursing.add_argument("--records", type=records, required=True, help="folder of records, or CSV")
    nursing.add_argument("--results", type=Path, required=True, help="folder to write to")
    nursing.add_argument("--fail-on", type=share, help=f"{FAIL_ON_NODES} {NODE_STATUSES}")
    nursing.set_defaults(
        command=lambda given: sets.make_nodes(given.records, given.results, given.fail_on)
    )
    trending = commands.add_parser("history", help="any number of result sets in their order")
    trending.add_argument("--sets", type=Path, nargs="+", required=True, help=sets.SETS)
    trending.add_argument("--by", choices=ORDERS, default=ORDERS[0], help="what orders them")
    trending.add_argument("--results", type=Path, required=True, help="folder to write to")
    trending.set_defaults(
        command=lambda given: sets.make_history(given.sets, given.by, given.results)
    )
    showing = commands.add_parser("overview", help="all frameworks side by side, in Markdown")
    showing.add_argument("--records", type=records, required=True, help="folder of records, or CSV")
    showing.add_argument("--into", type=Path, help="file with <!-- overview --> and its end")
    showing.set_defaults(command=lambda given: reporting.write_overview(given.records, given.into))
    linting = commands.add_parser("lint", help="check results, ours or published, for errors")
    linting.add_argument("--sources", type=records, nargs="+", required=True, help=SOURCES)
    linting.add_argument("--results", type=Path, required=True, help="folder to write to")
    linting.set_defaults(command=lambda given: sets.make_lint(given.sources, given.results))
    exporting = commands.add_parser("export", help="records in a format of another tool")
    exporting.add_argument(
        "--records", type=records, required=True, help="folder of records, or CSV"
    )
    exporting.add_argument("--format", required=True, help="see docs/formats.md")
    exporting.add_argument("--to", type=Path, help="file to write, instead of one below --results")
    exporting.add_argument("--results", type=Path, required=True, help="folder to write to")
    exporting.set_defaults(
        command=lambda given: sets.make_export(given.records, given.format, given.to, given.results)
    )
    importing = commands.add_parser("import", help="files of another tool as a set of records")
    importing.add_argument("--format", required=True, help="see docs/formats.md")
    importing.add_argument("--from", type=Path, required=True, dest="source", help="file or folder")
    importing.add_argument("--facts", type=facts, default={}, help="what the files do not say")
    importing.add_argument("--results", type=Path, required=True, help="folder to write to")
    importing.set_defaults(
        command=lambda given: sets.make_import(
            given.format, given.source, given.facts, given.results
        )
    )
    making_data = commands.add_parser("make-data", help="images or tokens for input pipelines")
    making_data.add_argument("--folder", type=Path, required=True, help="where they are made")
    making_data.add_argument("--images", type=int, help="how many")
    making_data.add_argument("--tokens", type=int, help="how many, instead")
    making_data.add_argument("--format", help="see docs/input.md")
    making_data.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    making_data.set_defaults(
        command=lambda given: upkeep.make_data(
            given.folder, given.images, given.tokens, given.format, given.seed
        )
    )
    locking = commands.add_parser("hashes", help="write envs/NAME.hashes.txt from envs/NAME.yaml")
    locking.add_argument("names", nargs="*", help="NAME, or FILE.yaml (default: all in envs/)")
    locking.set_defaults(command=lambda given: upkeep.make_hashes(given.names))
    containing = commands.add_parser("recipe", help="write Containerfiles from envs/NAME.yaml")
    containing.add_argument("names", nargs="*", help="NAME (default: all in envs/)")
    containing.add_argument("--to", type=Path, default=Path("recipes"), help="folder to write to")
    containing.set_defaults(command=lambda given: upkeep.write_recipes(given.names, given.to))
    cleaning = commands.add_parser("clean-environments", help="remove what no file makes any more")
    cleaning.add_argument("--environments", type=Path, required=True, help="the folder of all")
    cleaning.add_argument("--keep", nargs="*", default=[], help="names of those in use")
    cleaning.set_defaults(command=lambda given: upkeep.clean(given.environments, given.keep))
    listing = commands.add_parser("formats", help="which formats there are, and what they lose")
    listing.set_defaults(command=lambda given: upkeep.print_formats())
    explaining = commands.add_parser("columns", help="what the columns of the tables mean")
    explaining.set_defaults(command=lambda given: upkeep.print_columns())
    given = parser.parse_args(arguments)
    try:
        given.command(given)
    except gate.NotPassed as error:
        print(f"framebench: {error}", file=sys.stderr)
        return error.status
    except (ConfigError, record_sets.RecordsError, reporting.Disagreement, sets.Faulty) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"framebench: cannot write: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return exit_status.SIGNAL_BASE + signal.SIGINT
    return 0
