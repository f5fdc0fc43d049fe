"""Written values: shares, sizes and paths."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import PROJECT
from .validation import NotAllowed, show

SHARE = "a percentage like 5%, or a number like 0.05, above 0 and below 100 %"
MEMORY = (
    "auto, a size above 0 like 16GiB (or KiB, MiB, TiB; up to 1024TiB), or a share of the "
    "machine's memory like 80%, up to 100%"
)
#: Units of ``memory_limit``, in bytes.
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LARGEST_MEMORY = 1024 * 2**40


def share(written: Any) -> float:
    """Return a fraction, written as ``5%`` or ``0.05``. Raises :class:`NotAllowed`."""
    text = str(written)
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        part = 0.0
    if not 0 < part < 1:
        raise NotAllowed(SHARE)
    return part


def memory_limit(written: Any) -> str | None:
    """Return a size or share in the harness's form; None for ``auto``. Raises
    :class:`NotAllowed`."""
    if written == "auto":
        return None
    match = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?)(%|KiB|MiB|GiB|TiB)", str(written))
    number, unit = (float(match[1]), match[2]) if match else (0.0, "")
    fits = number <= 100 if unit == "%" else number * _UNITS.get(unit, 0) <= _LARGEST_MEMORY
    if not (match and number > 0 and fits):
        raise NotAllowed(MEMORY)
    return match[0]


def bytes_of(limit: str | None, total: int) -> int:
    """Return a memory limit in bytes, None for no limit; ``total``: memory of the machine, 0 if
    unknown."""
    if limit is None:
        return total
    if limit.endswith("%"):
        return int(float(limit[:-1]) / 100 * total)
    return min(total, int(float(limit[:-3]) * _UNITS[limit[-3:]]))


def path(written: Any) -> Path:
    """Return a path with ``~`` expanded, existing or not.

    Raises :class:`NotAllowed` for a path that cannot be accessed.
    """
    if not isinstance(written, str) or not written:
        raise NotAllowed("a text that is not empty")
    try:
        named = Path(written).expanduser()
        os.stat(named)
    except (FileNotFoundError, NotADirectoryError):
        return named
    except (OSError, RuntimeError, ValueError) as error:  # of ~USER without a home, or NUL
        raise NotAllowed("a path that can be looked at", f"{show(written)} ({error})") from None
    return named


def from_here(named: Path) -> Path:
    """Return a path relative to the working directory if it lies below it, else unchanged.

    A command with a relative path is valid on every machine.
    """
    here = Path.cwd()
    return named.relative_to(here) if named.is_relative_to(here) else named


def folder(written: Any) -> Path:
    """Return the path of a folder, existing or not. Raises :class:`NotAllowed` for a file's, and
    for signs that Snakemake reads as wildcards and shells as redirections."""
    named = path(written)
    if re.search("[{}<>]", str(written)):
        raise NotAllowed("a path without { } < >")
    if any(part.exists() and not part.is_dir() for part in (named, *named.parents)):
        raise NotAllowed("a folder")
    return named


def existing_folder(written: Any) -> Path:
    """Return the path of a folder. Raises :class:`NotAllowed` if there is none."""
    named = path(written)
    if not named.is_dir():
        raise NotAllowed("the path of a folder that exists")
    return named


def environment_file(written: Any) -> Path:
    """Return the path of an environment file, or of the one with this name in ``envs``.

    Raises :class:`NotAllowed` if there is none.
    """
    named, ours = path(written), PROJECT / "envs" / str(written)
    if not named.is_file() and "/" not in written and ours.is_file():
        return ours
    if not named.is_file():
        raise NotAllowed("the path of an environment file, or the name of one in envs/")
    return named


def record_set(written: Any) -> Path:
    """Return the path of a record set; for a results folder that of its runs.

    Raises :class:`NotAllowed` if there is none.
    """
    named = path(written)
    if not named.exists():
        raise NotAllowed(
            "a folder of records or a CSV of runs", f"{show(str(named))}, which does not exist"
        )
    return named / "runs" if (named / "runs").is_dir() else named


@dataclass(frozen=True)
class RecordSource:
    """Record set to compare: all runs, or those of one variant."""

    path: Path
    variant: str

    @staticmethod
    def parse(text: str) -> RecordSource:
        """Return the source in a text ``PATH`` or ``PATH@VARIANT``."""
        path, separator, variant = text.rpartition("@")
        if not separator or os.path.exists(text):
            return RecordSource(Path(text), "")
        return RecordSource(Path(path), variant)

    def __str__(self) -> str:
        return f"{self.path}@{self.variant}" if self.variant else str(self.path)


def side(text: str) -> RecordSource:
    """Return one side of a comparison. Raises :class:`NotAllowed` if there are no records."""
    source = RecordSource.parse(text)
    return RecordSource(record_set(str(source.path)), source.variant)
