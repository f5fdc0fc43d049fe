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


def _bisect(options: argparse.Namespace) -> int:
    known = catalog.load_catalog(PROJECT)
    with _model_file(options, known) as config:
        settings, suite = settings_of(config, known, RESERVED)
        for model in settings.own_models:
            known = model.among(known)
        framework = _framework(options.framework, settings, known)
        if options.package:  # a wrong one is told before the index is asked
            gate.own_environment(framework, settings, known).pin(options.package)
        case = _case(options.case, framework, settings, known)
    found = _candidates(options, framework, settings, known)
    _claim(options, found, case)
    request = messages.BisectRequest(
        found.subject, found.names[0], found.names[-1], case, options.margin
    )
    config = [*options.config, *([] if _is_file(options) else [f"frameworks={framework}"])]
    bench = BisectSetup(
        found, case, suite, options.margin, options.pairs, config, options.words, options.results
    )
    print(
        f"{found.subject}: {len(found.names)} from {options.good} to {options.bad}, of which "
        f"at most {most_steps(found.names)} are measured, each in at most {options.pairs} pairs "
        "with the first",
        flush=True,
    )
    return go(bench, found.names, request)


def _is_file(options: argparse.Namespace) -> bool:
    """Return whether versions of a user's own model are asked for."""
    return not options.package and str(options.good).endswith(".py")


@contextlib.contextmanager
def _model_file(options: argparse.Namespace, known: catalog.Catalog) -> Iterator[list[str]]:
    """Yield the configuration, with the good version of the model, if versions of one are asked
    for."""
    if not _is_file(options):
        yield options.config
        return
    if taken := [word for word in options.config if word.startswith("model=")]:
        raise ConfigError(
            f"--config: found {taken[0]!r} beside --good {options.good}; allowed: none"
        )
    with temporary.folder() as folder:
        side = sides.model("--good", options.good, known).in_file(folder)
        yield [*options.config, f"model={side.settings['model']}"]


def _framework(name: str | None, settings: Settings, known: catalog.Catalog) -> str:
    names = gate.measured_frameworks(settings) if name is None else [*known.frameworks]
    if name is None and len(names) == 1:
        return names[0]
    if name in known.frameworks:
        return str(name)
    shown = f"found {name!r}{did_you_mean(name, names)}" if name else "found none"
    raise ConfigError(f"--framework: {shown}; allowed: one of {', '.join(names)}")


def _candidates(
    options: argparse.Namespace, framework: str, settings: Settings, known: catalog.Catalog
) -> Candidates:
    good, bad = options.good, options.bad
    if options.package:
        environment_file = gate.own_environment(framework, settings, known)
        package = environment_file.pin(options.package).partition("==")[0]
        names = _versions(options, package, environment_file)
        return PackageVersions(
            package, names, environment_file, framework, settings, options.results
        )
    if options.versions and not _is_file(options):
        raise ConfigError("--versions: found without --package; allowed: with it, or with files")
    if _is_file(options):
        between = options.versions.split(",") if options.versions else ()
        return candidates.models(good, bad, between, known)
    if good.endswith((".yaml", ".yml")) and bad.endswith((".yaml", ".yml")):
        return candidates.environments(good, bad, framework, settings, options.results)
    if "=" in good + bad:
        return candidates.variables(good, bad)
    raise ConfigError(f"--good, --bad: found {good!r} and {bad!r}; allowed: {SIDES}")


def go(bench: BisectSetup, names: Sequence[str], request: messages.BisectRequest) -> int:
    """Measure versions until the search ends. Returns the exit status."""
    steps: dict[str, BisectStep] = {}
    slower: bool | None = None
    while (now := search(names, {name: step.state for name, step in steps.items()})).following:
        step = bench.look(now.following, slower)
        steps[step.version] = step
        if slower is None and step.state == CHANGED:
            slower = step.slower
            bench = replace(bench, margin=halfway(step, bench.margin))
            request = replace(request, between=bench.margin)
        print(f"\n{messages.line(step)}\n", flush=True)
        _write(bench.folder, steps, [f"looked at {len(steps)}"], request)
    lines = messages.ending(now, steps, request)
    _write(bench.folder, steps, lines, request)
    print("\n".join(lines))
    print(f"note:  {bench.folder / NOTE}\ntable: {bench.folder}/tables/bisect.csv")
    return messages.status(now)


def _write(
    folder: Path,
    steps: dict[str, BisectStep],
    lines: Sequence[str],
    request: messages.BisectRequest,
) -> None:
    looked = [*steps.values()]
    files = frames.files({messages.TABLE: messages.frame(looked)}, folder / "tables")
    write_together({**files, folder / NOTE: messages.note(lines, looked, request)})


def _case(named: str | None, framework: str, settings: Settings, known: catalog.Catalog) -> str:
    """Return the framework's only case in the suite, or the ``named`` one."""
    machine = settings.cluster.machine if settings.cluster else local.detect()
    found = matrix.narrow(fitting.cases_here(settings, known, machine)[0], settings)
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
    options: argparse.Namespace, package: str, environment_file: EnvironmentFile
) -> list[str]:
    """Return the versions to search; those of the index are fixed by the first call into the
    folder."""
    if options.versions:
        known, where = versions.listed(options.versions), "--versions"
    elif stored := _stored(options.results / STATE, options):
        return stored
    else:
        early = any(map(versions.is_early, (options.good, options.bad)))
        known = versions.in_index(package, environment_file.python, early)
        where = f"{package} for Python {environment_file.python}"
    return versions.between(options.good, options.bad, known, where)


def _stored(path: Path, options: argparse.Namespace) -> list[str]:
    """Return the candidates of an earlier call between the same versions; [] without one."""
    try:
        there = json_files.read(path)
        names = [str(name) for name in there["names"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return names if (names[0], names[-1]) == (options.good, options.bad) else []


def _claim(options: argparse.Namespace, candidates: Candidates, case: str) -> None:
    """Write STATE. Raises :class:`ConfigError` for a folder of another bisection."""
    path = options.results / STATE
    own = candidates.own.digest if isinstance(candidates, PackageVersions) else ""
    stated = {
        "subject": candidates.subject,
        "names": [*candidates.names],
        "case": case,
        "environment": own,
    }
    if path.exists():
        try:
            if json_files.read(path) == stated:
                return
        except (OSError, ValueError):
            pass
        raise ConfigError(
            f"--results: found {options.results}, which is of another bisection ({path}); allowed: "
            "another folder, or that one once it is removed"
        )
    write_whole(path, json.dumps(stated, indent=1) + "\n")
