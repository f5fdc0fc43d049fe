"""Ordered candidates of a bisection: versions of a package, or commits of a user's own model."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core import programs

from ....config.catalog import Catalog
from ....config.settings import Settings
from ....config.validation import ConfigError, did_you_mean
from ....environments import hashes, other_version
from ....environments.venvs import EnvironmentFile
from .. import sides
from ..built_environments import built
from ..sides import ModelSide, VariantSide

_EARLY = re.compile(r"\d(a|b|rc|\.dev)\d")


@dataclass(frozen=True)
class Candidates:
    """Candidates by name; the first is the good one, the last the bad one.

    ``subject``: name of the package or model; ``side``: returns a candidate as a side of a gate, or
    raises Absent; ``about``: returns what else differs from the good one, "" for nothing."""

    subject: str
    names: Sequence[str]
    side: Callable[[str], VariantSide | ModelSide]
    about: Callable[[str], str]


def package_versions(
    names: Sequence[str], package: str, own: EnvironmentFile, framework: str, settings: Settings,
    folder: Path,
) -> Candidates:  # fmt: skip
    """Return versions of a package in the environment file ``own`` of a framework. Environment
    files are written to ``folder`` and built."""

    def file(version: str) -> EnvironmentFile:
        path = folder / "environments" / f"{package}-{version}.yaml"

        def write() -> None:
            other_version.derive(own, package, version, path)

        return built(path, write, settings, hashes.exemption(own.path))

    def side(version: str) -> VariantSide:
        found = file(version)
        settings = {"environments": {framework: str(found.path)}}
        return VariantSide(found.path.stem, settings, found.digest)

    def about(version: str) -> str:
        moved = other_version.moved(file(names[0]), file(version))
        return "; ".join(f"{name} {change}" for name, change in moved.items() if name != package)

    return Candidates(package, names, side, about)


def versions_between(good: str, bad: str, package: str, python: str) -> list[str]:
    """Return the versions from ``good`` to ``bad`` in pip's index that have a wheel for ``python``,
    oldest first. Raises ConfigError, with pip's message, if there are none."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    command += ["--python-version", python, "--only-binary", ":all:"]
    command += ["--pre"] if _EARLY.search(f"{good} {bad}") else []
    asked = programs.run(command)
    match = re.search(r"^Available versions: (.+)$", asked.stdout, re.MULTILINE)
    if asked.returncode or not match:
        said = " ".join(asked.stderr.split()) or "nothing"
        raise ConfigError(
            f"--package: found {package!r}, of which pip says: {said}; allowed: a package of your "
            "index"
        )
    newest_first = [name.strip().partition("+")[0] for name in match[1].split(",")]
    known = [*dict.fromkeys(reversed(newest_first))]
    where = f"{package} for Python {python}: {', '.join(known)}"
    for key, version in (("--good", good), ("--bad", bad)):
        if version not in known:
            hint = did_you_mean(version, known)
            raise ConfigError(f"{key}: found {version!r}{hint}; allowed: those of {where}")
    if known.index(good) >= known.index(bad):
        raise ConfigError(
            f"--good, --bad: found {good} and {bad}; allowed: a bad one that comes after the good "
            f"one among those of {where}"
        )
    return known[known.index(good) : known.index(bad) + 1]


def model_versions(good: str, bad: str, catalog: Catalog) -> Candidates:
    """Return the versions of a model: of the commit ``good``, those that changed its files, and
    ``bad``, a commit's or a file. Raises ConfigError without a change."""
    first, last = sides.model("--good", good, catalog), sides.model("--bad", bad, catalog)
    found, titles = {good: first}, dict[str, str]()
    newest = first.digest
    for commit, title in _commits(good, bad, catalog):
        with contextlib.suppress(ConfigError):  # a commit without a valid model
            side = sides.model("--bad", f"{commit}:{good.partition(':')[2]}", catalog)
            if side.digest != newest:
                found[commit], titles[commit], newest = side, f"commit {title!r}", side.digest
    if newest != last.digest:
        found[bad] = last
    if len(found) == 1:
        raise ConfigError(f"--bad: found {bad}, which is as {good}; allowed: another version")
    subject = first.name.partition("@")[0]
    return Candidates(subject, [*found], found.__getitem__, lambda name: titles.get(name, ""))


def _commits(good: str, bad: str, catalog: Catalog) -> list[tuple[str, str]]:
    """Return (commit, title) of all commits after ``good`` up to ``bad`` that changed files of the
    first or the last version, oldest first."""
    revision, _, file = good.partition(":")
    to = bad.partition(":")[0] if ":" in bad and not Path(bad).exists() else "HEAD"
    ends = (sides.model("--good, --bad", f"{end}:{file}", catalog) for end in (revision, to))
    where = sorted({f":/{path}" for side in ends for path in side.files})
    log = ["git", "log", "--reverse", "--topo-order", "--format=%h%x09%s", f"{revision}..{to}"]
    ended = programs.run([*log, "--", *where])
    if ended.returncode:
        raise ConfigError(f"--good, --bad: git says: {' '.join(ended.stderr.split())}")
    lines = (line.partition("\t") for line in ended.stdout.splitlines())
    return [(commit, title) for commit, _, title in lines]
