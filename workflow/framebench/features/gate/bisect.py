"""``framebench bisect``: finds the version of a package, or the commit of your own model, that
changed a figure. Each version is measured in pairs against the good one. A killed call, or a call
with more pairs, continues with what is measured."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from core.case import Case

from ...cases import fitting, matrix
from ...config import catalog
from ...config.settings import Settings
from ...config.validation import ConfigError
from ...machine import local
from ...runs.snakemake_calls import settings_of
from . import sides, versions
from .bisection import CHANGED, OPEN, SKIPPED, UNCHANGED, BisectStep, judge, search
from .command import RESERVED, status_of
from .measuring import BASE, CANDIDATE, Measuring
from .versions import Absent, Versions

SIDES = "two versions with --package, or REVISION:FILE.py and REVISION:FILE.py or FILE.py"
#: Exit statuses besides 4 (broken).
FOUND, NOTHING, UNDECIDED = 0, 1, 3


def bisect(options: argparse.Namespace) -> int:
    """Run the bisection and return the exit status."""
    return status_of(_bisect, options)


def _bisect(options: argparse.Namespace) -> int:
    known = catalog.project_catalog()
    good, bad, package = options.good, options.bad, options.package
    config = options.config
    with tempfile.TemporaryDirectory(prefix="framebench-") as folder:
        if not package:
            if not (":" in good and good.endswith(".py") and bad.endswith(".py")):
                raise ConfigError(f"--good, --bad: found {good!r} and {bad!r}; allowed: {SIDES}")
            model = sides.model("--good", good).written(Path(folder))["model"]
            config = [*config, f"model={model}"]
        settings, suite = settings_of(config, known, RESERVED)
        for own_model in settings.own_models:
            known = own_model.among(known)
        case = _only_case(settings, known)
    if package:
        found = versions.package_versions(
            (good, bad), package, case.framework, settings, known, options.results
        )
    else:
        found = versions.model_versions(good, bad)
    count = len(found.names)
    print(
        f"{count} versions from {good} to {bad}, of which at most {1 + (count - 2).bit_length()} "
        f"are measured, each in at most {options.pairs} pairs with the first",
        flush=True,
    )
    config = [word for word in options.config if not word.startswith("cases=")]
    plan = Measuring(suite, options.pairs, config, options.words, options.results, [str(case)])

    def measured(version: str) -> BisectStep:
        return _measured(found, str(case), plan, version, options.margin)

    return search_versions(found.names, measured, options.margin)


def _only_case(settings: Settings, known: catalog.Catalog) -> Case:
    """Return the only requested case, without a variant."""
    machine = settings.cluster.machine if settings.cluster else local.detect()
    found = matrix.narrow(fitting.cases_here(settings, known, machine)[0], settings)
    cases = [*dict.fromkeys(case._replace(variant="") for case in found)]
    if len(cases) == 1:
        return cases[0]
    some = "; ".join(map(str, cases[:8])) + ("; .." if len(cases) > 8 else "")
    raise ConfigError(
        f"--config: cases: found {len(cases)} of suite {settings.suite.name}; allowed: one of "
        f"{some or 'none'}"
    )


def search_versions(
    names: Sequence[str], measured: Callable[[str], BisectStep], margin: float
) -> int:
    """Measure versions until the search ends. Returns the exit status.

    ``measured``: measures and judges a version."""
    steps: dict[int, BisectStep] = {}
    now = search(len(names), {})
    while now.following is not None:
        step = steps[now.following] = measured(names[now.following])
        print(f"\n{step}\n", flush=True)
        if step.state == OPEN:
            print(f"The same command with --pairs {step.next_look} goes on from here.")
            return UNDECIDED
        if now.following == len(names) - 1 and step.state != CHANGED:
            print(
                f"not changed: {names[-1]} is within {margin:.1%} of {names[0]}"
                if step.state == UNCHANGED
                else "Choose a bad version that runs."
            )
            return NOTHING if step.state == UNCHANGED else UNDECIDED
        now = search(len(names), {at: step.state for at, step in steps.items()})
    skipped = names[now.low + 1 : now.high]
    begins = "changed in" if skipped else "first changed in"
    print(begins, " or ".join([*skipped, str(steps[now.high])]))
    print(f"last without the change: {steps.get(now.low, names[0])}")
    return UNDECIDED if skipped else FOUND


def _measured(
    found: Versions, case: str, plan: Measuring, version: str, margin: float
) -> BisectStep:
    """Measure a version against the good one, and judge it. Raises RecordsError if the good version
    has no figure, and what :class:`Measuring` raises."""
    good = found.side(found.names[0])
    try:
        other = found.side(version)
    except Absent as error:
        return BisectStep(version, SKIPPED, str(error))
    cases = [f"{case} variant {BASE}", f"{case} variant {CANDIDATE}"]
    if other.model:
        cases[1] = cases[1].replace(f" {good.model} ", f" {other.model} ", 1)
    plan_of_step = replace(
        plan,
        repeats={"margin": margin, "at_most": plan.repeats, "two_sided": True},
        config=[*plan.config, f"cases={','.join(cases)}"],
    )
    # only the principal metric of a case, which decides
    base, candidate = (
        {key: one for key, one in side.items() if one.runs[0].key.metric == key.metric}
        for side in plan_of_step.measure(good, other)
    )
    return judge(version, base, candidate, margin)
