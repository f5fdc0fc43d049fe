"""Environment files with the packages that the configuration adds (``packages``)."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..config.provided import PIN
from ..config.settings import SOURCE
from ..config.validation import ConfigError, show
from . import hashes, locking
from .venvs import EnvironmentFile, read_environment_file


def file_of(environment_file: EnvironmentFile, pins: Sequence[str], environments: Path) -> Path:
    """Return the path of an environment file with ``pins`` added.

    It is in the folder of ``environments``. Its name depends on the content of
    ``environment_file``."""
    digest = hashlib.sha256(
        f"{environment_file.digest} {' '.join(sorted(pins))}".encode()
    ).hexdigest()
    return environments / f"{environment_file.path.stem}-with-{digest[:8]}.yaml"


def lock(environment_file: EnvironmentFile, pins: Sequence[str], environments: Path) -> Path:
    """Write the environment file with ``pins`` added, and its hashes, whose path is returned.

    All of its pins stay. Raises :class:`ConfigError` for packages without a version, and with
    uv's message where that is impossible."""
    if loose := [pin for pin in pins if not re.fullmatch(PIN, pin)]:
        raise ConfigError(f"--with: found {show(loose[0])}; allowed: NAME==VERSION")
    target = file_of(environment_file, pins, environments)
    environments.mkdir(parents=True, exist_ok=True)
    locking.with_packages(environment_file, pins, target)
    return locking.lock(target)


def read(
    environment_file: EnvironmentFile,
    framework: str,
    pins: Sequence[str],
    environments: Path,
    hashed: bool,
) -> EnvironmentFile:
    """Return the locked environment file with ``pins`` added.

    Raises :class:`ConfigError` with the command that locks it if that was not called."""
    file = file_of(environment_file, pins, environments)
    if not file.is_file():
        arguments = [
            environment_file.path.stem,
            "--with",
            *pins,
            "--environments",
            str(environments),
        ]
        raise ConfigError(
            f"{SOURCE}: packages.{framework}: found {show(list(pins))}, which are not locked for "
            f"{environment_file.path.name}; "
            f"allowed: after `{hashes.COMMAND} {shlex.join(arguments)}`"
        )
    return read_environment_file(file, hashed)
