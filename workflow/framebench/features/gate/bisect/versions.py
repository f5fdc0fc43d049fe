"""Versions of a package between a good and a bad one, oldest first."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from core import programs

from ....config.validation import ConfigError, did_you_mean

#: Versions that are valid after ``==`` and as the name of a folder.
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!_-]*")
_SHOWN = 12


def between(good: str, bad: str, known: Sequence[str], where: str) -> list[str]:
    """Return the versions in ``known``, oldest first, from ``good`` to ``bad``.
    ``where``: source of ``known``, for messages. Raises :class:`ConfigError` if one of both is not
    in ``known``, or the good one is not older."""
    for key, version in (("--good", good), ("--bad", bad)):
        if version not in known:
            some = known if len(known) <= _SHOWN else ["..", *known[-_SHOWN:]]
            raise ConfigError(
                f"{key}: found {version!r}{did_you_mean(version, known)}; allowed: those of "
                f"{where}: {', '.join(some) or 'none'}"
            )
    first, last = known.index(good), known.index(bad)
    if first >= last:
        raise ConfigError(
            f"--good, --bad: found {good} and {bad}; allowed: a bad one that comes after the good "
            f"one among those of {where}"
        )
    return list(known[first : last + 1])


def listed(text: str) -> list[str]:
    """Parse ``--versions``, keeping the order. Raises :class:`ConfigError` for an invalid list."""
    names = [name.strip() for name in text.split(",")]
    wrong = [name for name in names if not _VERSION.fullmatch(name)]
    if wrong or len(set(names)) < len(names):
        shown = wrong[0] if wrong else next(name for name in names if names.count(name) > 1)
        raise ConfigError(
            f"--versions: found {shown!r}; allowed: versions with commas between them, oldest "
            "first, each once"
        )
    return names


def in_index(package: str, python: str, early: bool) -> list[str]:
    """Return the versions in pip's index with a wheel for ``python``, oldest first.
    ``early``: include pre-releases. Raises :class:`ConfigError` with pip's message."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    command += ["--python-version", python, "--only-binary", ":all:"]
    command += ["--pre"] if early else []
    asked = programs.run(command)
    match = re.search(r"^Available versions: (.+)$", asked.stdout, re.MULTILINE)
    if asked.returncode or not match:
        errors = [line for line in asked.stderr.splitlines() if line.startswith("ERROR")]
        said = " ".join(errors or asked.stderr.split()) or "nothing"
        raise ConfigError(
            f"--package: found {package!r}, of which pip says: {said}; allowed: a package of your "
            "index, or --versions"
        )
    newest_first = [name.strip().partition("+")[0] for name in match[1].split(",")]
    return [*dict.fromkeys(reversed(newest_first))]


def is_early(version: str) -> bool:
    """Return whether a version is a pre-release, like 2.13.0rc1."""
    return bool(re.search(r"\d(a|b|rc|\.dev)\d", version))
