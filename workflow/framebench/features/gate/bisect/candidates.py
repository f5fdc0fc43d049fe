"""Ordered candidates of a bisection, from a good one to a bad one: versions of a package, versions
of a user's own model, and environments or sets of variables that change step by step."""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from core import programs

from ....config.catalog import Catalog
from ....config.settings import Settings
from ....config.validation import ConfigError
from ....environments import hashes, other_version
from ....environments.venvs import EnvironmentFile, read_environment_file
from .. import sides
from ..built_environments import built
from ..sides import ModelSide, VariantSide


def file_name(candidate: str) -> str:
    """Return the name of a candidate in names of files and folders."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", candidate)


@dataclass(frozen=True)
class Candidates(ABC):
    """Candidates by name; the first is the good one, the last the bad one.

    ``subject``: what the bisection is about."""

    subject: str
    names: Sequence[str]

    @abstractmethod
    def side(self, name: str) -> VariantSide | ModelSide:
        """Return a candidate as a side of a measurement. Raises :class:`Absent`."""

    def moved(self, name: str) -> str:
        """Return further facts about a candidate, such as what else differs from the good one; ""
        for none."""
        return ""

    def case(self, name: str, case: str) -> str:
        """Return the name of ``case``, which is the good one's, of a candidate."""
        return case


@dataclass(frozen=True)
class PackageVersions(Candidates):
    """Versions of a package in the environment file ``own`` of a framework.

    Environment files are written to ``folder`` and built."""

    own: EnvironmentFile
    framework: str
    settings: Settings
    folder: Path

    def side(self, name: str) -> VariantSide:
        file = self._file(name)
        environments = {self.framework: str(file.path)}
        return VariantSide(file.path.stem, {"environments": environments}, file.digest)

    def moved(self, name: str) -> str:
        changes = other_version.moved(self._file(self.names[0]), self._file(name)).items()
        return "; ".join(
            f"{package} {version}" for package, version in changes if package != self.subject
        )

    def _file(self, version: str) -> EnvironmentFile:
        path = self.folder / "environments" / f"{self.subject}-{version}.yaml"

        def write() -> None:
            other_version.derive(self.own, self.subject, version, path)

        return built(path, write, self.settings, hashes.exemption(self.own.path))


@dataclass(frozen=True)
class Environments(Candidates):
    """Environments between two files: the pins in which both differ are changed one after the
    other, and each is named by its last change."""

    good: EnvironmentFile
    bad: EnvironmentFile
    framework: str
    settings: Settings
    folder: Path

    @staticmethod
    def changes(good: EnvironmentFile, bad: EnvironmentFile) -> list[str]:
        """Return the names of the changes, in their order."""
        after = other_version.pins(bad)
        return [f"{name}=={after.get(name, 'none')}" for name in other_version.moved(good, bad)]

    def side(self, name: str) -> VariantSide:
        at = self.names.index(name)
        changed = {name.partition("==")[0] for name in self.names[1 : at + 1]}
        path = self.folder / "environments" / f"{at}-{file_name(name)}.yaml"

        def write() -> None:
            other_version.mix(self.good, self.bad, changed, path)

        file = built(path, write, self.settings, "")
        return VariantSide(name, {"environments": {self.framework: str(file.path)}}, file.digest)


@dataclass(frozen=True)
class VariableSets(Candidates):
    """Sets of environment variables, which change one after the other from ``good`` to ``bad``."""

    good: Mapping[str, str]
    bad: Mapping[str, str]

    @staticmethod
    def changes(good: Mapping[str, str], bad: Mapping[str, str]) -> list[str]:
        """Return the names of the changes, in their order."""
        some = sorted(name for name in {**good, **bad} if good.get(name) != bad.get(name))
        return [f"{name}={bad[name]}" if name in bad else f"without-{name}" for name in some]

    def side(self, name: str) -> VariantSide:
        values = dict(self.good)
        for change in self.names[1 : self.names.index(name) + 1]:
            key, equals, value = change.partition("=")
            if equals:
                values[key] = value
            else:
                del values[key.removeprefix("without-")]
        return VariantSide(name, {"variables": values} if values else {})


@dataclass(frozen=True)
class ModelVersions(Candidates):
    """Versions of a user's own model, by commit or file. ``about``: description of each version."""

    files: Mapping[str, ModelSide]
    about: Mapping[str, str]

    def side(self, name: str) -> ModelSide:
        return self.files[name]

    def moved(self, name: str) -> str:
        return self.about.get(name, "")

    def case(self, name: str, case: str) -> str:
        good, other = (self.files[known].name for known in (self.names[0], name))
        return case.replace(f" {good} ", f" {other} ", 1)


def models(good: str, bad: str, between: Sequence[str], catalog: Catalog) -> ModelVersions:
    """Return the versions of a model from ``good`` to ``bad``, each a file or a file of a commit.

    ``between``: files between them; without any, the commits that changed the file. Raises
    :class:`ConfigError`."""
    first, last = sides.model("--good", good, catalog), sides.model("--bad", bad, catalog)
    found, about = {good: first}, dict[str, str]()
    for name in between:
        found[name] = sides.model("--versions", name, catalog)
    if not between:
        for commit, title, file in _commits(good, bad, catalog):
            with contextlib.suppress(ConfigError):  # a commit without a valid model
                found[commit] = sides.model("--bad", f"{commit}:{file}", catalog)
                about[commit] = f"commit {title!r}"
    if [*found.values()][-1].digest != last.digest:
        found[bad] = last
    names = [*found]
    distinct = [
        name for before, name in pairwise(names) if found[before].digest != found[name].digest
    ]
    if not distinct:
        raise ConfigError(f"--bad: found {bad}, which is as {good}; allowed: another version")
    subject = last.name.partition("@")[0]
    return ModelVersions(subject, [good, *distinct], found, about)


def _commits(good: str, bad: str, catalog: Catalog) -> list[tuple[str, str, str]]:
    """Return (commit, title, file) of all commits after ``good`` that changed its files, or those
    of the last version, up to ``bad``, oldest first; [] if ``good`` is of no commit."""
    revision, separator, file = good.partition(":")
    if not separator or Path(good).exists():
        return []
    to = bad.partition(":")[0] if ":" in bad and not Path(bad).exists() else "HEAD"
    ends = (sides.model("--good, --bad", f"{end}:{file}", catalog) for end in (revision, to))
    where = sorted({f":/{path}" for side in ends for path in side.files})
    arguments = [
        "git",
        "log",
        "--reverse",
        "--topo-order",
        "--format=%h%x09%s",
        f"{revision}..{to}",
    ]
    listed = programs.run([*arguments, "--", *where])
    if listed.returncode:
        raise ConfigError(f"--good, --bad: git says: {' '.join(listed.stderr.split())}")
    lines = (line.partition("\t") for line in listed.stdout.splitlines())
    return [(commit, title, file) for commit, _, title in lines]


def environments(
    good: str, bad: str, framework: str, settings: Settings, folder: Path
) -> Environments:
    """Return the environments between two files. Raises :class:`ConfigError`."""
    first, last = (read_environment_file(Path(name), hashed=False) for name in (good, bad))
    changes = Environments.changes(first, last)
    if not changes:
        raise ConfigError(f"--bad: found {bad}, with the pins of {good}; allowed: other pins")
    names = [good, *changes]
    return Environments("environment", names, first, last, framework, settings, folder)


def variables(good: str, bad: str) -> VariableSets:
    """Return the sets of variables between two. Raises :class:`ConfigError`."""
    first, last = sides.variables("--good", good), sides.variables("--bad", bad)
    changes = VariableSets.changes(first, last)
    if not changes:
        raise ConfigError(f"--bad: found {bad!r}, as {good!r}; allowed: another set of variables")
    return VariableSets("variables", [good, *changes], first, last)
