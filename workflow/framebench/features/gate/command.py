"""``framebench gate``: measures two sides in pairs, decides, and says so in a note, in JUnit's XML,
in a table and by its exit status, which is 1 for a regression and for nothing else."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from ... import PROJECT
from ...config import catalog
from ...config.arguments import share, whole
from ...config.repeats import PAIRS
from ...config.validation import ConfigError
from ...config.values import RecordSource
from ...files.whole_files import write_together
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...runs.snakemake_calls import MeasuringFailed, settings_of
from ...tables import frames
from ...tables.judged import grouped
from . import decisions, measuring, sides, summary
from .measuring import AnotherGate, Measuring

NOTE, JUNIT = "gate.md", "gate.xml"
STATUSES = (
    "Exit status: 0 passed; 1 a regression is shown; 3 cannot tell yet, or nothing to compare; 4 "
    "broken. Words behind -- are given to Snakemake."
)
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {"results": "--results"}


class Parser(argparse.ArgumentParser):
    """Argument parser that exits with the status FAULTY for a wrong command line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(decisions.FAULTY, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = Parser(prog="framebench gate", description=__doc__, epilog=STATUSES)
    made.add_argument("--base", required=True, help=sides.ALLOWED)
    made.add_argument("--candidate", required=True, help="likewise, of the same kind")
    made.add_argument("--fail-on", type=share, default=0.05, help="the margin (default: 5%%)")
    add_measuring(made, Path("results", "gate"))
    return made


def add_measuring(made: argparse.ArgumentParser, folder: Path) -> None:
    """Add the options of a command that measures pairs into ``folder`` with Snakemake."""
    about = f"of runs of each case, at most (default: {PAIRS})"
    made.add_argument("--pairs", type=whole(1, 1000), default=PAIRS, help=about)
    made.add_argument("--results", type=Path, default=folder)
    made.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="as Snakemake's")
    made.add_argument("words", nargs="*", metavar="-- WORD", help="for Snakemake")


def main(arguments: Sequence[str]) -> int:
    """Run the gate and return the exit status; any error is "broken", never a regression."""

    def note(options: argparse.Namespace, message: str) -> None:
        request = summary.GateRequest(
            options.base, options.candidate, options.fail_on, measured=True
        )
        files = {
            options.results / NOTE: request.note(decisions.FAULTY, [message]),
            options.results / JUNIT: summary.broken_junit(message),
        }
        try:
            write_together(files)
        except OSError as error:
            print(f"framebench: cannot write: {error.filename}: {error.strerror}", file=sys.stderr)

    return run(parser(), arguments, run_gate, note)


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    act: Callable[[argparse.Namespace], int],
    note: Callable[[argparse.Namespace, str], None] = lambda options, message: None,
) -> int:
    """Run a command that measures and return its exit status, FAULTY with a message for any error.

    ``note``: is given the message, unless the results folder belongs to another gate."""
    try:
        options = parser.parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        with snakemake_calls.without_traces():
            return act(options)
    except KeyboardInterrupt:
        print(f"framebench: {snakemake_calls.GOES_ON}", file=sys.stderr)
        return snakemake_calls.INTERRUPTED
    except (ConfigError, RecordsError, MeasuringFailed) as error:
        message, is_ours = str(error), not isinstance(error, AnotherGate)
    except OSError as error:
        message, is_ours = f"{error.filename or options.results}: {error.strerror or error}", True
    except Exception as error:
        traceback.print_exc()
        message, is_ours = f"{type(error).__name__}: {error} (an error of Framebench's own)", True
    print(f"framebench: broken: {message}", file=sys.stderr)
    if is_ours:
        note(options, message)
    return decisions.FAULTY


def run_gate(options: argparse.Namespace) -> int:
    """Measure or read both sides, decide about every case and return the exit status."""
    known = catalog.load_catalog(PROJECT)
    settings, suite = settings_of(options.config, known, RESERVED)
    base, candidate = sides.both(
        options.base, options.candidate, suite.get("variants") or {}, known
    )
    if isinstance(base, RecordSource) or isinstance(candidate, RecordSource):
        assert isinstance(base, RecordSource), "both are of one kind"
        assert isinstance(candidate, RecordSource), "both are of one kind"
        found, is_measured = (grouped(base), grouped(candidate)), False
    else:
        if settings.model and candidate.model:
            raise ConfigError(
                f"--config: model: found {settings.model.source!r} beside two models; allowed: "
                "none, or two variants"
            )
        until_decided = {"margin": options.fail_on, "at_most": options.pairs}
        models = [own_model.name for own_model in settings.own_models]
        plan = Measuring(
            suite, until_decided, options.config, options.words, options.results, models
        )
        plan.measure(base, candidate)
        found, is_measured = measuring.results(plan.folder, candidate.model), True
    request = summary.GateRequest(options.base, options.candidate, options.fail_on, is_measured)
    decided = decisions.decide(*found, options.fail_on, at_looks=is_measured)
    status = decisions.status(decided)
    frame = decisions.frame(decided, options.fail_on)
    files = frames.files({decisions.TABLE: frame}, options.results / "tables")
    files[options.results / JUNIT] = summary.junit(decided, request)
    files[options.results / NOTE] = note = summary.note(decided, status, request)
    write_together(files)
    print(f"\n{note}\nnote:  {options.results / NOTE}\ntable: {options.results}/tables/gate.csv")
    return status
