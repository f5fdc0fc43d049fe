"""Removal of environments that no file defines any more."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..config.validation import ConfigError
from ..files import locks
from .venvs import read_environment_file

#: Name of a folder of ours: the environment file's name and eight hexadecimal digits.
_OURS = re.compile(r".+-[0-9a-f]{8}")
#: File in every venv, finished or not.
_VENV = "pyvenv.cfg"


class Leftover(NamedTuple):
    """An unused environment.
    ``freed``: bytes of its files that no other folder shares (uv links most files to its cache);
    ``why``: reason why it was kept, "" if removed."""

    folder: Path
    freed: int
    why: str


def clean(environments: Path, wanted: Collection[str]) -> Iterator[Leftover]:
    """Remove all environments below ``environments``, except those in ``wanted`` or being built.
    Other folders are not touched. Raises OSError."""
    for folder in sorted(environments.iterdir()) if environments.is_dir() else ():
        ours = _OURS.fullmatch(folder.name) and (folder / _VENV).is_file()
        if ours and not folder.is_symlink() and folder.name not in wanted:
            freed = _own_bytes(folder)
            yield Leftover(folder, freed, _remove(folder))


def names(files: Iterable[Path]) -> list[str]:
    """Return the names of the environments of these files, with and without hashes.
    Unreadable files are skipped."""
    found = set()
    for path in files:
        for hashed in (True, False):
            with suppress(ConfigError):
                found.add(read_environment_file(path, hashed).name)
    return sorted(found)


def _remove(folder: Path) -> str:
    """Remove an environment; return the reason if it is being built, else ""."""
    why = "it is being built"
    lock = folder.with_name(f"{folder.name}.lock")
    try:
        with locks.take(lock, "", busy=why):
            shutil.rmtree(folder)
            lock.unlink()
    except locks.LockError:
        return why
    return ""


def _own_bytes(folder: Path) -> int:
    files = (os.lstat(os.path.join(top, name)) for top, _, own in os.walk(folder) for name in own)
    return sum(file.st_size for file in files if file.st_nlink == 1)
