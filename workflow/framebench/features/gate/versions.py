"""Ordered versions for a bisection: of a package, or commits of a user's own model."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from core import programs

from ...cases import fitting
from ...config.catalog import Catalog
from ...config.settings import Settings
from ...config.validation import ConfigError
from ...environments import building, locking, software, venvs
from ...environments.venvs import EnvironmentFile, read_environment_file
from ...files.whole_files import LockError, write_whole
from ...machine import local
from ...records.run import RecordsError
from . import sides
from .sides import MeasuredSide


class Absent(RecordsError):
    """Version that cannot be installed, with the reason."""


class Versions(NamedTuple):
    """Versions by name; the first is the good one, the last the bad one.

    ``side``: returns a version as a side of a gate, or raises Absent."""

    names: Sequence[str]
    side: Callable[[str], MeasuredSide]


def package_versions(
    ends: tuple[str, str],
    package: str,
    framework: str,
    settings: Settings,
    catalog: Catalog,
    folder: Path,
) -> Versions:
    """Return the versions of a package in a framework's environment between ``ends``. Environment
    files are written to ``folder`` and built. Raises ConfigError for a version that the index
    lacks."""
    own = _own_environment(framework, settings, catalog)
    package = own.pin(package).partition("==")[0]
    names = _index_versions(*ends, package, own.python)

    def side(version: str) -> MeasuredSide:
        file = _built(own, package, version, settings, folder)
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
        assert place.marker is not None, "without --sdm we make it"
        building.ensure(path, place.marker, hashed)
    except (ConfigError, LockError) as error:
        raise Absent(f"cannot be installed: {' '.join(str(error).split())}") from None
    except subprocess.CalledProcessError as error:
        raise Absent(f"cannot be installed: uv ended with {error.returncode}") from None
    return result


def _index_versions(good: str, bad: str, package: str, python: str) -> list[str]:
    """Return the versions from ``good`` to ``bad`` in pip's index that have a wheel for ``python``,
    oldest first. Raises ConfigError, with pip's message, if there are none."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    command += ["--python-version", python, "--only-binary", ":all:"]
    asked = programs.run(command)
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
    ``bad``, a commit or a file. Raises ConfigError without a change."""
    first, last = sides.model("--good", good), sides.model("--bad", bad)
    revision, _, file = good.partition(":")
    to = bad.partition(":")[0] if ":" in bad and not Path(bad).exists() else "HEAD"
    log = ["git", "log", "--reverse", "--topo-order", "--format=%h", f"{revision}..{to}"]
    ended = programs.run([*log, "--", ":/*.py"])
    if ended.returncode:
        raise ConfigError(f"--good, --bad: git says: {' '.join(ended.stderr.split())}")
    found, newest = {good: first}, first.digest
    for commit in ended.stdout.split():
        with contextlib.suppress(ConfigError):  # a commit without a valid model
            side = sides.model("--bad", f"{commit}:{file}")
            if side.digest != newest:
                found[commit], newest = side, side.digest
    if newest != last.digest:
        found[bad] = last
    if len(found) == 1:
        raise ConfigError(f"--bad: found {bad}, which equals {good}; allowed: another version")
    return Versions([*found], found.__getitem__)
