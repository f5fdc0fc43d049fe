"""``framebench bisect``: finds the version of a package, or the commit of your own model, that
changed a figure. Each candidate is measured in pairs against the good one. A call that was killed,
and one with more pairs, goes on from what is measured."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from .... import PROJECT
from ....cases import fitting, matrix
from ....config import catalog
from ....config.arguments import share
from ....config.settings import Settings
from ....config.validation import ConfigError, did_you_mean
from ....files import temporary
from ....files.whole_files import write_together
from ....machine import local
from ....records.run import RecordsError
from ....runs.snakemake_calls import settings_of
from ....tables import frames
from ....tables.results import CaseResults
from .. import command as gate
from .. import measuring, sides
from ..built_environments import Absent
from ..measuring import BASE, CANDIDATE, Measuring
from ..sides import ModelSide
from . import candidates
from .candidates import Candidates
from .search import OPEN, SKIPPED, UNCHANGED, most_steps, search
from .steps import TABLE, BisectStep, halfway, judge

ERRORS = "bisect-error.log"
SIDES = "two versions with --package, or REVISION:FILE.py and REVISION:FILE.py or FILE.py"
#: Exit statuses besides 4 (broken).
FOUND, NOTHING, UNDECIDED = 0, 1, 3
STATUSES = (
    "Exit status: 0 one version is found; 1 the bad one is within the margin of the good one; 3 "
    "cannot tell yet, or between which versions alone; 4 broken. Words behind -- are given to "
    "Snakemake."
)
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {"results": "--results", "frameworks": "--framework", "cases": "--case"}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = gate.Parser(prog="framebench bisect", description=__doc__, epilog=STATUSES)
    made.add_argument("--framework", help="whose figure it is (default: that of the model)")
    made.add_argument("--package", help="of the framework's environment, for two of its versions")
    made.add_argument("--good", required=True, metavar="VERSION", help=SIDES)
    made.add_argument("--bad", required=True, metavar="VERSION", help="the figure has changed")
    made.add_argument("--case", help="as the plan names it, where the suite has several")
    made.add_argument("--margin", type=share, default=0.05, help="a change is more (default: 5%%)")
    gate.add_pairs(made)
    gate.add_measuring(made, Path("results", "bisect"))
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the bisection and return the exit status."""
    return gate.run(parser(), arguments, _bisect, ERRORS)


def _bisect(options: argparse.Namespace) -> int:
    known, config = catalog.load_catalog(PROJECT), options.config
    good, bad, package = options.good, options.bad, options.package
    is_model = ":" in good and good.endswith(".py") and bad.endswith(".py")
    if not package and not is_model:
        raise ConfigError(f"--good, --bad: found {good!r} and {bad!r}; allowed: {SIDES}")
    with temporary.folder() as folder:
        if not package:
            if taken := [word for word in config if word.startswith("model=")]:
                raise ConfigError(
                    f"--config: found {taken[0]!r} beside --good {good}; allowed: none"
                )
            side = sides.model("--good", good, known).in_file(folder)
            config = [*config, f"model={side.settings['model']}"]
        settings, suite = settings_of(config, known, RESERVED)
        for model in settings.own_models:
            known = model.among(known)
        framework = _framework(options, settings, known)
        if package:  # a wrong one is told before the cases
            own = gate.own_environment(framework, settings, known)
            package = own.pin(package).partition("==")[0]
        case = _case(options.case, framework, settings, known)
    if package:
        names = candidates.versions_between(good, bad, package, own.python)
        found = candidates.package_versions(
            names, package, own, framework, settings, options.results
        )
        config = [*options.config, f"frameworks={framework}"]
    else:
        found, config = candidates.model_versions(good, bad, known), options.config
    count = len(found.names)
    print(
        f"{found.subject}: {count} from {good} to {bad}, of which at most {most_steps(count)} are "
        f"measured, each in at most {options.pairs} pairs with the first",
        flush=True,
    )
    plan = Measuring(suite, options.pairs, config, options.words, options.results, [case])

    def measured(version: str, margin: float, slower: bool | None) -> BisectStep:
        return _measured(found, case, plan, version, margin, slower)

    return bisect(found.names, measured, options.margin, options.results)


def _framework(options: argparse.Namespace, settings: Settings, known: catalog.Catalog) -> str:
    names = [*known.frameworks] if options.framework else gate.measured_frameworks(settings)
    found = options.framework or (names[0] if len(names) == 1 else "")
    if found not in known.frameworks:
        shown = f"{found!r}{did_you_mean(found, names)}" if found else "none"
        raise ConfigError(f"--framework: found {shown}; allowed: one of {', '.join(names)}")
    return str(found)


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


def bisect(
    names: Sequence[str],
    measured: Callable[[str, float, bool | None], BisectStep],
    margin: float,
    folder: Path,
) -> int:
    """Measure versions until the search ends. Returns the exit status.

    ``measured``: judges a version by a margin, and in one direction unless that is None."""
    steps: dict[int, BisectStep] = {}
    last, limit, slower = len(names) - 1, margin, None
    now = search(len(names), {})
    while now.following is not None:
        step = measured(names[now.following], limit, slower)
        steps[now.following] = step
        rows = [each.row for each in steps.values()]
        write_together(frames.files({TABLE: frames.frame(TABLE, rows)}, folder / "tables"))
        print(f"\n{step}\n", flush=True)
        if step.state == OPEN:
            print(f"cannot tell of {step}")
            if step.needed:
                print(f"The same command with --pairs {step.needed} goes on from here.")
            return UNDECIDED
        if last == now.following:
            if step.state == SKIPPED:
                print(f"{step}: choose a bad version that runs.")
                return UNDECIDED
            if step.state == UNCHANGED:
                print(f"not changed: {names[-1]} is within {margin:.1%} of {names[0]}")
                return NOTHING
            limit, slower = halfway(step, margin), (step.ratio or 1) < 1
        now = search(len(names), {at: step.state for at, step in steps.items()})
    skipped = names[now.low + 1 : now.high]
    begins = "changed in" if skipped else "first changed in"
    print(begins, " or ".join([*skipped, str(steps[now.high])]))
    print(f"last without the change: {steps.get(now.low, names[0])}")
    print(f"table: {folder / 'tables' / 'bisect.csv'}")
    return UNDECIDED if skipped else FOUND


def _measured(
    found: Candidates, case: str, plan: Measuring, version: str, margin: float, slower: bool | None
) -> BisectStep:
    """Measure a version against the good one, and judge it. Raises RecordsError if the good version
    has no figure, and what :class:`Measuring` raises."""
    try:
        good = found.side(found.names[0])
    except Absent as error:
        raise RecordsError(f"{found.names[0]}: cannot be installed: {error}") from None
    try:
        other = found.side(version)
    except Absent as error:
        return BisectStep(version, SKIPPED, f"cannot be installed: {error}")
    cases = [f"{case} variant {BASE}", f"{case} variant {CANDIDATE}"]
    if isinstance(good, ModelSide) and isinstance(other, ModelSide):
        cases[1] = cases[1].replace(f" {good.name} ", f" {other.name} ", 1)
    plan_of_step = replace(
        plan,
        repeats={"margin": margin, "at_most": plan.repeats, "two_sided": True},
        config=[*plan.config, f"cases={','.join(cases)}"],
        folder=plan.folder / re.sub(r"[^A-Za-z0-9._-]+", "-", version),
    )
    plan_of_step.measure(good, other)
    base, candidate = map(_principal, measuring.results(plan_of_step.folder))
    if isinstance(good, ModelSide):
        base, candidate = (measuring.called(side, found.subject) for side in (base, candidate))
    step = judge(version, base, candidate, margin, slower)
    return replace(step, moved=found.about(version))


def _principal(cases: CaseResults) -> CaseResults:
    """Return the principal figure of each case, by which it is compared."""
    return {
        key: result for key, result in cases.items() if any(run.key == key for run in result.runs)
    }
