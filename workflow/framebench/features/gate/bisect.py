"""``framebench bisect``: finds the version of a package, or the commit of your own model, that
changed a figure. Each version is measured in pairs against the good one, and judged by the gate's
decisions. A call after a killed one, or with more pairs, reuses what was measured.

It is a binary search. The first version is the good one. The last one is tested first; if it has
not changed, the search ends. Then the middle between the latest unchanged and the earliest changed
version is tested, or, if that is skipped, the nearest one. If a figure changed and changed back,
one of the changes is found."""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from core import programs
from core.case import Case

from ...cases import fitting, matrix
from ...config.catalog import Catalog, project_catalog
from ...config.settings import Settings
from ...config.validation import ConfigError
from ...environments import building, locking, software, venvs
from ...environments.venvs import EnvironmentFile, read_environment_file
from ...files.whole_files import LockError, write_whole
from ...machine import local
from ...records.run import RecordsError
from ...runs.snakemake_calls import settings_of
from ...statistics import sequential
from ...tables.results import CaseResults
from . import command, decisions
from .command import BASE, CANDIDATE, RESERVED, MeasuredSide, status_of

SIDES = "two versions with --package, or REVISION:FILE.py and REVISION:FILE.py or FILE.py"
#: Results of a version.
CHANGED, UNCHANGED, SKIPPED, OPEN = "changed", "not changed", "skipped", "cannot tell"
#: Exit statuses besides 4 (broken).
FOUND, NOTHING, UNDECIDED = 0, 1, 3


def bisect(options: argparse.Namespace) -> int:
    """Run the bisection and return the exit status."""
    return status_of(_bisect, options)


def _bisect(options: argparse.Namespace) -> int:
    known = project_catalog()
    good, bad, package = options.good, options.bad, options.package
    config = options.config
    with tempfile.TemporaryDirectory(prefix="framebench-") as folder:
        if not package:
            if not (":" in good and good.endswith(".py") and bad.endswith(".py")):
                raise ConfigError(f"--good, --bad: found {good!r} and {bad!r}; allowed: {SIDES}")
            model = command.model("--good", good).written(Path(folder))["model"]
            config = [*config, f"model={model}"]
        settings, suite = settings_of(config, known, RESERVED)
        for own_model in settings.own_models:
            known = own_model.among(known)
        case = _only_case(settings, known)
    if package:
        found = package_versions(options, case.framework, settings, known)
    else:
        found = model_versions(good, bad)
    count = len(found.names)
    print(
        f"{count} versions from {good} to {bad}, of which at most {1 + (count - 2).bit_length()} "
        f"are measured, each in at most {options.pairs} pairs with the first",
        flush=True,
    )
    config = [word for word in options.config if not word.startswith("cases=")]

    good_side = found.side(found.names[0])
    repeats = {"margin": options.margin, "at_most": options.pairs, "two_sided": True}

    def measured(version: str) -> BisectStep:
        """Measure a version against the good one, and judge it."""
        try:
            other = found.side(version)
        except Absent as error:
            return BisectStep(version, SKIPPED, str(error))
        cases = [f"{case} variant {BASE}", f"{case} variant {CANDIDATE}"]
        if other.model:
            cases[1] = cases[1].replace(f" {good_side.model} ", f" {other.model} ", 1)
        both = command.measure(
            good_side, other, suite, repeats, [*config, f"cases={','.join(cases)}"],
            options.words, options.results, [str(case)],
        )  # fmt: skip
        # only the principal metric of a case, which decides
        base, candidate = (
            {key: one for key, one in side.items() if one.runs[0].key.metric == key.metric}
            for side in both
        )
        return judge(version, base, candidate, options.margin)

    return search_versions(found.names, measured, options.margin)


def _only_case(settings: Settings, known: Catalog) -> Case:
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


class BisectState(NamedTuple):
    """Indices of the latest unchanged version, of the earliest changed one, and of the version to
    test next (None at the end, when all versions between the two were skipped)."""

    low: int
    high: int
    following: int | None


def search(count: int, known: Mapping[int, str]) -> BisectState:
    """Return the state of the search over ``count`` versions. ``known``: results by index."""
    low = max((at for at, state in known.items() if state == UNCHANGED), default=0)
    high = min((at for at, state in known.items() if state == CHANGED), default=count - 1)
    if high not in known:
        return BisectState(low, high, high)
    untested = [at for at in range(low + 1, high) if at not in known]
    following = min(untested, key=lambda at: (abs(2 * at - low - high), at), default=None)
    return BisectState(low, high, following)


@dataclass(frozen=True)
class BisectStep:
    """Result of one version.

    ``ratio``: ratio to the good version, above 1 is better; ``next_look``: pairs after which an
    undecided version may be decided."""

    version: str
    state: str
    reason: str = ""
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    pairs: int = 0
    next_look: int | None = None

    def __str__(self) -> str:
        """Return ``2.12.1: changed: 0.930 [0.912, 0.951], 12 pairs``."""
        ends = f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]" if self.interval else ""
        figures = f"{self.ratio:.3f}{ends}, {self.pairs} pairs" if self.ratio is not None else ""
        return ": ".join(filter(None, (self.version, self.state, figures, self.reason)))


def judge(version: str, good: CaseResults, other: CaseResults, margin: float) -> BisectStep:
    """Judge a version: changed if it or the good version is shown to be slower than the other by
    more than the margin. Raises RecordsError if the good version has no figure."""
    for result in good.values():
        if result.compared is None:
            raise RecordsError(f"the good version is {result.why_not_compared}")
    if not good:
        raise RecordsError("the good version has no run")
    (down, *_), (up, *_) = (
        decisions.decide(*sides, margin, at_looks=True) for sides in ((good, other), (other, good))
    )
    if (estimate := down.estimate) is None:
        return BisectStep(version, SKIPPED, down.reason)
    step = BisectStep(version, UNCHANGED, "", estimate.ratio, estimate.interval, estimate.pairs)
    verdicts = {down.verdict, up.verdict}
    if decisions.REGRESSION in verdicts:
        return replace(step, state=CHANGED)
    if verdicts == {decisions.WITHIN}:
        return step
    looks = [one.next_look for one in (down, up) if one.verdict != decisions.WITHIN]
    return replace(step, state=OPEN, next_look=looks[0] or sequential.LOOKS[-1])


class Absent(RecordsError):
    """Version that cannot be installed, with the reason."""


class Versions(NamedTuple):
    """Versions by name; the first is the good one, the last the bad one.

    ``side``: returns a version as a side of a gate, or raises Absent."""

    names: Sequence[str]
    side: Callable[[str], MeasuredSide]


def package_versions(
    options: argparse.Namespace, framework: str, settings: Settings, catalog: Catalog
) -> Versions:
    """Return the versions of a package in a framework's environment from the good to the bad one.
    Environment files are written to the results and built. Raises ConfigError for a version that
    the index lacks."""
    own = _own_environment(framework, settings, catalog)
    package = own.pin(options.package).partition("==")[0]
    names = _index_versions(options.good, options.bad, package, own.python)

    def side(version: str) -> MeasuredSide:
        file = _built(own, package, version, settings, options.results)
        return MeasuredSide(file.path.stem, {"environments": {framework: str(file.path)}})

    return Versions(names, side)


def _own_environment(framework: str, settings: Settings, catalog: Catalog) -> EnvironmentFile:
    """Return the framework's environment file for this machine, with the packages that the
    configuration adds."""
    machine = settings.cluster.machine if settings.cluster else local.detect()
    accelerator = fitting.accelerator_of(settings, machine)
    path, reason = catalog.environment_file(framework, accelerator, machine.devices)
    if path is None:
        raise ConfigError(f"frameworks: found {framework}, but {reason}")
    file, pins = read_environment_file(path, hashed=False), settings.packages.get(framework)
    if not pins:
        return file
    return locking.read_with(file, framework, pins, settings.environments, hashed=False)


def _built(
    own: EnvironmentFile, package: str, version: str, settings: Settings, folder: Path
) -> EnvironmentFile:
    """Return the environment file with another version of a package, after writing and building it
    where needed. Raises Absent."""
    path = folder / "environments" / f"{package}-{version}.yaml"
    try:
        if not path.is_file():
            locking.with_version(own, package, version, path)
        hashed = settings.require_hashes
        if hashed and not venvs.hash_files(path):
            if exempt := venvs.exemption(own.path):
                write_whole(path.with_name(path.stem + venvs.SUFFIX), f"# exempt: {exempt}\n")
            else:
                locking.lock(path)
        result = read_environment_file(path, hashed)
        place = software.from_file(result, settings)
        assert place.marker is not None, "without --sdm Framebench builds it"
        building.ensure(path, place.marker, hashed)
    except (ConfigError, LockError) as error:
        raise Absent(f"cannot be installed: {' '.join(str(error).split())}") from None
    except subprocess.CalledProcessError as error:
        raise Absent(f"cannot be installed: uv ended with {error.returncode}") from None
    return result


def _index_versions(good: str, bad: str, package: str, python: str) -> list[str]:
    """Return the versions from ``good`` to ``bad`` in pip's index that have a wheel for ``python``,
    oldest first. Raises ConfigError, with pip's message, if there are none."""
    call = [sys.executable, "-m", "pip", "index", "versions", package]
    call += ["--python-version", python, "--only-binary", ":all:"]
    asked = programs.run(call)
    match = re.search(r"^Available versions: (.+)$", asked.stdout, re.MULTILINE)
    if asked.returncode or not match:
        said = " ".join(asked.stderr.split()) or "nothing"
        raise ConfigError(f"--package: found {package!r}, of which pip says: {said}")
    newest_first = [name.strip().partition("+")[0] for name in match[1].split(",")]
    known = [*dict.fromkeys(reversed(newest_first))]
    if not {good, bad} <= {*known} or known.index(good) >= known.index(bad):
        raise ConfigError(
            f"--good, --bad: found {good} and {bad}; allowed: two versions of {package} for Python "
            f"{python}, the older one first: {', '.join(known)}"
        )
    return known[known.index(good) : known.index(bad) + 1]


def model_versions(good: str, bad: str) -> Versions:
    """Return the versions of a model: commit ``good``, the commits that changed its files, and
    ``bad``, a commit or a file. Raises ConfigError if nothing changed."""
    first, last = command.model("--good", good), command.model("--bad", bad)
    revision, _, file = good.partition(":")
    to = bad.partition(":")[0] if ":" in bad and not Path(bad).exists() else "HEAD"
    log = ["git", "log", "--reverse", "--topo-order", "--format=%h", f"{revision}..{to}"]
    ended = programs.run([*log, "--", ":/*.py"])
    if ended.returncode:
        raise ConfigError(f"--good, --bad: git says: {' '.join(ended.stderr.split())}")
    found, newest = {good: first}, first.digest
    for commit in ended.stdout.split():
        with contextlib.suppress(ConfigError):  # a commit without a valid model
            side = command.model("--bad", f"{commit}:{file}")
            if side.digest != newest:
                found[commit], newest = side, side.digest
    if newest != last.digest:
        found[bad] = last
    if len(found) == 1:
        raise ConfigError(f"--bad: found {bad}, which equals {good}; allowed: another version")
    return Versions([*found], found.__getitem__)
