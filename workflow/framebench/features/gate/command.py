"""``framebench gate``: measures two sides in pairs, decides, and says so in a note, in JUnit's XML,
in a table and by its exit status, which is 1 for a regression and for nothing else."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from ... import PROJECT
from ...cases import fitting
from ...config import catalog
from ...config.arguments import share, whole
from ...config.repeats import PAIRS
from ...config.settings import Settings
from ...config.validation import ConfigError
from ...environments import added_packages, hashes, other_version
from ...environments.venvs import EnvironmentFile, read_environment_file
from ...files.whole_files import write_together, write_whole
from ...machine import local
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...runs.snakemake_calls import MeasuringFailed, settings_of
from ...tables import frames
from ...tables.judged import grouped
from ...tables.results import CaseResults
from . import decisions, measuring, sides, summary
from .built_environments import Absent, built
from .measuring import AnotherGate, Measuring
from .sides import Measured, ModelSide, PackageSide, RecordsSide, Side, VariantSide

NOTE, JUNIT, ERRORS = "gate.md", "gate.xml", "gate-error.log"
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
    add_pairs(made)
    add_measuring(made, Path("results", "gate"))
    return made


def add_pairs(made: argparse.ArgumentParser) -> None:
    """Add the option for the limit of pairs."""
    about = f"of runs of each case, at most (default: {PAIRS})"
    made.add_argument("--pairs", type=whole(1, 1000), default=PAIRS, help=about)


def add_measuring(made: argparse.ArgumentParser, folder: Path) -> None:
    """Add the options of a command that measures into ``folder`` with Snakemake."""
    made.add_argument("--results", type=Path, default=folder)
    made.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="as Snakemake's")
    made.add_argument("words", nargs="*", metavar="-- WORD", help="for Snakemake")


def main(arguments: Sequence[str]) -> int:
    """Run the gate and return the exit status; any error is "broken", never a regression."""

    def note(options: argparse.Namespace, message: str) -> None:
        request = summary.GateRequest(
            options.base, options.candidate, options.fail_on, measured=True
        )
        keep(options.results / NOTE, summary.broken_note(message, request))
        keep(options.results / JUNIT, summary.broken_junit(message))

    return run(parser(), arguments, run_gate, ERRORS, note)


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    act: Callable[[argparse.Namespace], int],
    errors: str,
    note: Callable[[argparse.Namespace, str], None] = lambda options, message: None,
) -> int:
    """Run a command that measures and return its exit status, FAULTY with a message for any error.

    ``errors``: file in the results folder for errors of our own. ``note``: is given the message,
    unless the results folder belongs to another gate."""
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
    except AnotherGate as error:
        print(f"framebench: broken: {error}", file=sys.stderr)
        return decisions.FAULTY
    except (ConfigError, RecordsError, MeasuringFailed) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or options.results}: {error.strerror or error}"
    except Exception as error:
        log = options.results / errors
        message = f"{type(error).__name__}: {error} (an error of Framebench's own, see {log})"
        keep(log, traceback.format_exc())
    print(f"framebench: broken: {message}", file=sys.stderr)
    note(options, message)
    return decisions.FAULTY


def keep(path: Path, text: str) -> None:
    """Write a file, or print why it cannot be written; the exit status tells the result as well."""
    try:
        write_whole(path, text)
    except OSError as error:
        print(f"framebench: cannot write: {path}: {error.strerror}", file=sys.stderr)


def run_gate(options: argparse.Namespace) -> int:
    """Measure or read both sides, decide about every case and return the exit status."""
    known = catalog.load_catalog(PROJECT)
    settings, suite = settings_of(options.config, known, RESERVED)
    base, candidate = sides.both(
        options.base, options.candidate, suite.get("variants") or {}, settings.frameworks, known
    )
    if settings.model and isinstance(base, ModelSide):
        raise ConfigError(
            f"--config: model: found {settings.model.source!r} beside two models; allowed: "
            "none, or two variants or environments"
        )
    base, candidate = (
        _in_environment(side, settings, known, options.results) for side in (base, candidate)
    )
    is_measured = not isinstance(base, RecordsSide)
    commits = ""
    if isinstance(base, ModelSide) and isinstance(candidate, ModelSide):
        both = [side.commit for side in (base, candidate)]
        commits = f"commits {both[0]} -> {both[1]}" if all(both) else ""
    request = summary.GateRequest(
        options.base, options.candidate, options.fail_on, is_measured, commits
    )
    until_decided = {"margin": options.fail_on, "at_most": options.pairs}
    models = [own_model.name for own_model in settings.own_models]
    plan = Measuring(suite, until_decided, options.config, options.words, options.results, models)
    found = _results(base, candidate, plan)
    decided = decisions.decide(*found, options.fail_on, at_looks=is_measured)
    status = decisions.status(decided)
    frame = decisions.frame(decided, options.fail_on)
    files = frames.files({decisions.TABLE: frame}, options.results / "tables")
    files[options.results / JUNIT] = summary.junit(decided, request)
    files[options.results / NOTE] = note = summary.note(decided, status, request)
    write_together(files)
    print(f"\n{note}\nnote:  {options.results / NOTE}\ntable: {options.results}/tables/gate.csv")
    return status


def _results(base: Side, candidate: Side, plan: Measuring) -> tuple[CaseResults, CaseResults]:
    """Return the cases of both sides, after measuring them if they are not records."""
    if isinstance(base, RecordsSide) and isinstance(candidate, RecordsSide):
        return grouped(base.source), grouped(candidate.source)
    both = [entry for entry in (base, candidate) if isinstance(entry, Measured)]
    assert len(both) == 2, "both are of one kind, and built"
    plan.measure(*both)
    result = measuring.results(plan.folder)
    if not isinstance(candidate, ModelSide):
        return result
    name = candidate.name.partition("@")[0]
    return measuring.called(result[0], name), measuring.called(result[1], name)


def measured_frameworks(settings: Settings) -> list[str]:
    """Return the frameworks of the user's own models, or those that the configuration asks for."""
    own = dict.fromkeys(own_model.framework for own_model in settings.own_models)
    return [*(own or settings.frameworks)]


def own_environment(framework: str, settings: Settings, known: catalog.Catalog) -> EnvironmentFile:
    """Return the framework's environment file for this machine, with the packages that the
    configuration adds."""
    machine = settings.cluster.machine if settings.cluster else local.detect()
    accelerator = fitting.accelerator_of(settings, machine)
    path, reason = known.environment_file(framework, accelerator, machine.devices)
    if path is None:
        raise ConfigError(f"frameworks: found {framework}, but {reason}")
    file, pins = read_environment_file(path, hashed=False), settings.packages.get(framework)
    if not pins:
        return file
    return added_packages.read(file, framework, pins, settings.environments, hashed=False)


def _in_environment(side: Side, settings: Settings, known: catalog.Catalog, folder: Path) -> Side:
    """Return a side with a version of a package as one with an environment file, which is written
    to ``folder`` and built."""
    if not isinstance(side, PackageSide):
        return side
    names = measured_frameworks(settings)
    if len(names) != 1:
        raise ConfigError(
            f"{side.text}: found {len(names)} frameworks; allowed: one (--config frameworks=NAME, "
            "or model=..)"
        )
    (framework,) = names
    own = own_environment(framework, settings, known)
    path = folder / "environments" / f"{side.name}-{side.version}.yaml"

    def write() -> None:
        other_version.derive(own, side.name, side.version, path)

    try:
        file = built(path, write, settings, hashes.exemption(own.path))
    except Absent as error:
        raise ConfigError(f"{side.text}: cannot be installed: {error}") from None
    return VariantSide(side.text, {"environments": {framework: str(path)}}, file.digest)
