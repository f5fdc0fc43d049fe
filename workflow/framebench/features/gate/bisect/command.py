"""``framebench bisect``: finds what changed a figure: the version of a package, the commit or
file of your own model, or the pin or variable in which two sets differ. Each candidate is measured
in pairs against the good one. A call that was killed, and one with more pairs, goes on from what is
measured."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .... import PROJECT
from ....cases import fitting, matrix
from ....config import catalog
from ....config.arguments import share
from ....config.settings import Settings
from ....config.validation import ConfigError, did_you_mean
from ....environments.venvs import EnvironmentFile
from ....files import json_files, temporary
from ....files.whole_files import write_together, write_whole
from ....machine import local
from ....runs.snakemake_calls import settings_of
from ....tables import frames
from .. import command as gate
from .. import sides
from . import candidates, messages, versions
from .candidates import Candidates, PackageVersions
from .search import CHANGED, BisectStep, most_steps, search
from .steps import BisectSetup, halfway

STATE, NOTE, ERRORS = "bisect.json", "bisect.md", "bisect-error.log"
SIDES = (
    "two versions (with --package), REVISION:FILE.py and REVISION:FILE.py or FILE.py, two files "
    "(.py), two environment files (.yaml), or variables (NAME=VALUE,NAME=VALUE, or usual)"
)
STATUSES = (
    "Exit status: 0 one version is found; 1 the bad one is within the margin of the good one; 3 "
    "cannot tell yet, or between which versions alone; 4 broken. Words behind -- are given to "
    "Snakemake."
)
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {
    "results": "--results",
    "frameworks": "--framework",
    "cases": "--case",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = gate.Parser(prog="framebench bisect", description=__doc__, epilog=STATUSES)
    made.add_argument("--framework", help="whose figure it is (default: that of the model)")
    made.add_argument("--package", help="of the framework's environment, for two of its versions")
    made.add_argument("--good", required=True, metavar="VERSION", help=f"{SIDES}")
    made.add_argument("--bad", required=True, metavar="VERSION", help="the figure has changed")
    made.add_argument("--versions", metavar="V,V", help="to look among, versions or files")
    made.add_argument("--case", help="as the plan names it, where the suite has several")
    made.add_argument("--margin", type=share, default=0.05, help="a change is more (default: 5%%)")
    gate.add_pairs(made)
    gate.add_measuring(made, Path("results", "bisect"))
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the bisection and return the exit status."""
    return gate.run(parser(), arguments, _bisect, ERRORS)


def _bisect(given: argparse.Namespace) -> int:
    known = catalog.load_catalog(PROJECT)
    with _model_file(given) as config:
        settings, suite = settings_of(config, known, RESERVED)
        for model in settings.own_models:
            known = model.among(known)
        framework = _framework(given.framework, settings, known)
        if given.package:  # a wrong one is told before the index is asked
            gate.own_environment(framework, settings, known).pin(given.package)
        case = _case(given.case, framework, settings, known)
    found = _candidates(given, framework, settings, known)
    _claim(given, found, case)
    asked = messages.BisectRequest(
        found.subject, found.names[0], found.names[-1], case, given.margin
    )
    config = [*given.config, *([] if _is_file(given) else [f"frameworks={framework}"])]
    bench = BisectSetup(
        found, case, suite, given.margin, given.pairs, config, given.words, given.results
    )
    print(
        f"{found.subject}: {len(found.names)} from {given.good} to {given.bad}, of which at most "
        f"{most_steps(found.names)} are measured, each in at most {given.pairs} pairs with the "
        "first",
        flush=True,
    )
    return go(bench, found.names, asked)


def _is_file(given: argparse.Namespace) -> bool:
    """Return whether versions of a user's own model are asked for."""
    return not given.package and str(given.good).endswith(".py")


@contextlib.contextmanager
def _model_file(given: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the configuration, with the good version of the model, if versions of one are asked
    for."""
    if not _is_file(given):
        yield given.config
        return
    if taken := [word for word in given.config if word.startswith("model=")]:
        raise ConfigError(f"--config: found {taken[0]!r} beside --good {given.good}; allowed: none")
    with temporary.folder() as folder:
        side = sides.model("--good", given.good).in_file(folder)
        yield [*given.config, f"model={side.settings['model']}"]


def _framework(name: str | None, settings: Settings, known: catalog.Catalog) -> str:
    names = gate.measured_frameworks(settings) if name is None else [*known.frameworks]
    if name is None and len(names) == 1:
        return names[0]
    if name in known.frameworks:
        return str(name)
    shown = f"found {name!r}{did_you_mean(name, names)}" if name else "found none"
    raise ConfigError(f"--framework: {shown}; allowed: one of {', '.join(names)}")


def _candidates(
    given: argparse.Namespace, framework: str, settings: Settings, known: catalog.Catalog
) -> Candidates:
    good, bad = given.good, given.bad
    if given.package:
        own = gate.own_environment(framework, settings, known)
        package = own.pin(given.package).partition("==")[0]
        names = _versions(given, package, own)
        return PackageVersions(package, names, own, framework, settings, given.results)
    if given.versions and not _is_file(given):
        raise ConfigError("--versions: found without --package; allowed: with it, or with files")
    if _is_file(given):
        between = given.versions.split(",") if given.versions else ()
        return candidates.models(good, bad, between, known)
    if good.endswith((".yaml", ".yml")) and bad.endswith((".yaml", ".yml")):
        return candidates.environments(good, bad, framework, settings, given.results)
    if "=" in good + bad:
        return candidates.variables(good, bad)
    raise ConfigError(f"--good, --bad: found {good!r} and {bad!r}; allowed: {SIDES}")


def go(bench: BisectSetup, names: Sequence[str], asked: messages.BisectRequest) -> int:
    """Measure versions until the search ends. Returns the exit status."""
    steps: dict[str, BisectStep] = {}
    slower: bool | None = None
    while (now := search(names, {name: step.state for name, step in steps.items()})).following:
        step = bench.look(now.following, slower)
        steps[step.version] = step
        if slower is None and step.state == CHANGED:
            slower = step.slower
            bench = replace(bench, margin=halfway(step, bench.margin))
            asked = replace(asked, between=bench.margin)
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


def _case(named: str | None, framework: str, settings: Settings, known: catalog.Catalog) -> str:
    """Return the framework's only case in the suite, or the ``named`` one."""
    machine = settings.cluster.machine if settings.cluster else local.detect()
    usual = fitting.usual_precision(settings, machine)
    found = matrix.narrow(matrix.cases(settings.suite, known, usual, machine.gpus), settings)
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


def _versions(given: argparse.Namespace, package: str, own: EnvironmentFile) -> list[str]:
    """Return the versions to search; those of the index are fixed by the first call into the
    folder."""
    if given.versions:
        known, where = versions.listed(given.versions), "--versions"
    elif stored := _stored(given.results / STATE, given):
        return stored
    else:
        early = any(map(versions.is_early, (given.good, given.bad)))
        known = versions.in_index(package, own.python, early)
        where = f"{package} for Python {own.python}"
    return versions.between(given.good, given.bad, known, where)


def _stored(path: Path, given: argparse.Namespace) -> list[str]:
    """Return the candidates of an earlier call between the same versions; [] without one."""
    try:
        there = json_files.read(path)
        names = [str(name) for name in there["names"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return names if (names[0], names[-1]) == (given.good, given.bad) else []


def _claim(given: argparse.Namespace, found: Candidates, case: str) -> None:
    """Write STATE. Raises :class:`ConfigError` for a folder of another bisection."""
    path = given.results / STATE
    own = found.own.digest if isinstance(found, PackageVersions) else ""
    stated = {"subject": found.subject, "names": [*found.names], "case": case, "environment": own}
    if path.exists():
        try:
            if json_files.read(path) == stated:
                return
        except (OSError, ValueError):
            pass
        raise ConfigError(
            f"--results: found {given.results}, which is of another bisection ({path}); allowed: "
            "another folder, or that one once it is removed"
        )
    write_whole(path, json.dumps(stated, indent=1) + "\n")
