"""``framebench bisect``: finds the version of a package that changed a figure. Each version is
measured in pairs against the good one. A call that was killed, and one with more pairs, goes on
from what is measured."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .... import PROJECT
from ....cases import fitting, matrix
from ....config import catalog
from ....config.arguments import share
from ....config.settings import Settings
from ....config.validation import ConfigError, did_you_mean
from ....environments.venvs import EnvironmentFile, read_environment_file
from ....files import json_files
from ....files.whole_files import write_together, write_whole
from ....machine import local
from ....records.run import RecordsError
from ....tables import frames
from .. import command as gate
from ..decisions import FAULTY
from ..measuring import MeasuringFailed, without_traces
from . import messages, versions
from .search import CHANGED, BisectStep, most_steps, search
from .steps import BisectSetup

STATE, NOTE, ERRORS = "bisect.json", "bisect.md", "bisect-error.log"
STATUSES = (
    "Exit status: 0 one version is found; 1 the bad one is within the margin of the good one; 3 "
    "cannot tell yet, or between which versions alone; 4 broken. Words behind -- are given to "
    "Snakemake."
)
#: Exit status of a program that Ctrl-C ends, as in shells.
INTERRUPTED = 130
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {
    "results": "--results",
    "frameworks": "--framework",
    "cases": "--case",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = gate.Parser(prog="framebench bisect", description=__doc__, epilog=STATUSES)
    made.add_argument("--framework", required=True, help="whose environment the package is in")
    made.add_argument("--package", required=True, help="as its environment file names it")
    made.add_argument("--good", required=True, metavar="VERSION", help="the figure is as it was")
    made.add_argument("--bad", required=True, metavar="VERSION", help="the figure has changed")
    made.add_argument("--versions", metavar="V,V", help="to look among (default: the index's)")
    made.add_argument("--case", help="as the plan names it, where the suite has several")
    made.add_argument("--margin", type=share, default=0.05, help="a change is more (default: 5%%)")
    gate.add_pairs(made)
    gate.add_measuring(made, Path("results", "bisect"))
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the bisection and return the exit status."""
    try:
        given = parser().parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        with without_traces():
            return _bisect(given)
    except (ConfigError, RecordsError, MeasuringFailed) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or given.results}: {error.strerror or error}"
    except KeyboardInterrupt:
        print("framebench: interrupted: the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        log = given.results / ERRORS
        message = f"{type(error).__name__}: {error} (an error of Framebench's own, see {log})"
        gate.keep(log, traceback.format_exc())
    print(f"framebench: broken: {message}", file=sys.stderr)
    return FAULTY


def _bisect(given: argparse.Namespace) -> int:
    known = catalog.load_catalog(PROJECT)
    settings, suite = gate.settings_of(given.config, known, RESERVED)
    for model in settings.own_models:
        known = model.among(known)
    own = _environment(given.framework, settings, known)
    package = own.pin(given.package).partition("==")[0]
    case = _case(given.case, given.framework, settings, known)
    names = _versions(given, package, case, own)
    asked = messages.BisectRequest(package, given.good, given.bad, case, given.margin)
    bench = BisectSetup(
        given.framework, package, case, given.good, own, settings, suite, given.margin,
        given.pairs, given.config, given.words, given.results,
    )  # fmt: skip
    print(
        f"{package}: {len(names)} versions from {given.good} to {given.bad}, of which at most "
        f"{most_steps(names)} are measured, each in at most {given.pairs} pairs with {given.good}",
        flush=True,
    )
    return go(bench, names, asked)


def go(bench: BisectSetup, names: Sequence[str], asked: messages.BisectRequest) -> int:
    """Measure versions until the search ends. Returns the exit status."""
    steps: dict[str, BisectStep] = {}
    slower: bool | None = None
    while (now := search(names, {name: one.state for name, one in steps.items()})).following:
        step = bench.look(now.following, slower)
        steps[step.version] = step
        if slower is None and step.state == CHANGED:
            slower = step.slower
        print(f"\n{messages.line(step)}\n", flush=True)
        _write(bench.folder, steps, [f"looked at {len(steps)}"], asked)
    lines = messages.ending(now, steps, asked)
    _write(bench.folder, steps, lines, asked)
    print("\n".join(lines))
    print(f"note:  {bench.folder / NOTE}\ntable: {bench.folder}/tables/bisect.csv")
    return messages.status(now)


def _write(
    folder: Path, steps: dict[str, BisectStep], lines: Sequence[str], asked: messages.BisectRequest
) -> None:
    looked = [*steps.values()]
    files = frames.files({messages.TABLE: messages.frame(looked)}, folder / "tables")
    write_together({**files, folder / NOTE: messages.note(lines, looked, asked)})


def _environment(name: str, settings: Settings, known: catalog.Catalog) -> EnvironmentFile:
    """Return the framework's environment file for this machine."""
    if name not in known.frameworks:
        names = [*known.frameworks]
        raise ConfigError(
            f"--framework: found {name!r}{did_you_mean(name, names)}; allowed: {', '.join(names)}"
        )
    machine = settings.cluster.machine if settings.cluster else local.detect()
    accelerator = fitting.accelerator_of(settings, machine)
    return read_environment_file(known.environment_file(name, accelerator), hashed=False)


def _case(named: str | None, framework: str, settings: Settings, known: catalog.Catalog) -> str:
    """Return the framework's only case in the suite, or the ``named`` one."""
    machine = settings.cluster.machine if settings.cluster else local.detect()
    usual = fitting.usual_precision(settings, machine)
    found = matrix.narrow(matrix.cases(settings.suite, known, usual), settings)
    plain = [case._replace(variant="") for case in found if case.framework == framework]
    names = [*dict.fromkeys(str(case) for case in plain)]
    if named in names or (named is None and len(names) == 1):
        return named or names[0]
    shown = f"found {named!r}{did_you_mean(named, names)}" if named else "found none"
    some = "; ".join(names[:8]) + ("; .." if len(names) > 8 else "")
    raise ConfigError(
        f"--case: {shown}; allowed: one of the {len(names)} cases of {framework} in suite "
        f"{settings.suite.name}: {some or 'none'}"
    )


def _versions(
    given: argparse.Namespace, package: str, case: str, own: EnvironmentFile
) -> list[str]:
    """Return the versions to search, fixed by the first call into the folder."""
    path = given.results / STATE
    stated: dict[str, Any] = {
        **{key: getattr(given, key) for key in ("framework", "good", "bad")},
        **{"package": package, "case": case, "asked": given.versions, "environment": own.digest},
    }
    if path.exists():
        try:
            there = json_files.read(path)
            if {key: there[key] for key in stated} == stated:
                return [str(name) for name in there["versions"]]
        except (OSError, ValueError, TypeError, KeyError):
            pass
        raise ConfigError(
            f"--results: found {given.results}, which is of another bisection ({path}); allowed: "
            "another folder, or that one once it is removed"
        )
    if given.versions:
        known, where = versions.listed(given.versions), "--versions"
    else:
        early = any(map(versions.is_early, (given.good, given.bad)))
        known = versions.in_index(package, own.python, early)
        where = f"{package} for Python {own.python}"
    found = versions.between(given.good, given.bad, known, where)
    write_whole(path, json.dumps({**stated, "versions": found}, indent=1) + "\n")
    return found
