"""What was read from records before, so that thousands of them need not be parsed again.

An index is no more than a shortcut: it is made of the records, may be deleted at any time, and
whatever is wrong with it makes it empty. Of a record it knows the run that was read from it, as
long as the file is the very same: its inode, size and times are. A copied folder has other inodes,
so an index that came with results from elsewhere says nothing of them.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..cases import conditions
from ..files import bounded, whole_files
from ..machine import identities
from . import run
from .fields import communication, curves, fed, phases, step_parts
from .run import Run

_PACKAGE = Path(__file__).parents[1]
#: What a run is read by; the index of any other code is none.
_CODE = ("cases", "files", "machine", "records")
_SCHEMA = _PACKAGE.parent / "schemas" / "record.schema.json"
_MODULES = (conditions, identities, communication, curves, fed, phases, run, step_parts)
#: A file that was written within the same tick of the clock as it was read may have changed since
#: with nothing to show for it.
_SETTLED_NS = 2 * 10**9

#: Device, inode, size, and when content and inode were changed last (ns).
State = tuple[int, int, int, int, int]


class Entry(NamedTuple):
    """``run`` is without its path; ``digest``: SHA-256 of the file's content."""

    state: State
    run: Run
    digest: bytes


class Index:
    """The entries by the path of their record below the folder of the records."""

    def __init__(self, file: Path, writes: bool = True) -> None:
        """``file``: where it is kept; a folder that is missing is not made. ``writes``: whether
        :meth:`keep` does."""
        self._file, self._writes = file, writes
        self._before = _load(file)
        self._now: dict[str, Entry] = {}
        self._is_changed = False

    def get(self, file: Path, origin: str) -> Entry | None:
        """What was read from ``file``, if it has not been touched since; the run has its path."""
        entry = self._before.get(origin)
        if entry is None or entry.state != _state(file):
            return None
        self._now[origin] = entry
        return entry._replace(run=replace(entry.run, record=file))

    def add(self, file: Path, origin: str, read: Run, digest: bytes) -> None:
        """Note what has just been read. Raises OSError where the file has vanished."""
        state = _state(file)
        if time.time_ns() - max(state[3:]) > _SETTLED_NS:
            self._now[origin] = Entry(state, replace(read, record=None), digest)
            self._is_changed = True

    def keep(self) -> None:
        """Write it down if it says something else than before. A folder that cannot be written to
        goes without."""
        if self._writes and (self._is_changed or len(self._now) != len(self._before)):
            content = pickle.dumps((_version(), self._now), protocol=5)
            try:
                if self._file.parent.is_dir():
                    whole_files.write_whole_bytes(self._file, content)
            except OSError:
                pass


def _state(file: Path) -> State:
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _load(file: Path) -> dict[str, Entry]:
    try:
        version, entries = _Unpickler(io.BytesIO(bounded.read_bytes(file))).load()
    # There is none yet, or whatever bytes there are: of those a pickle may raise anything.
    except Exception:
        return {}
    return dict(entries) if version == _version() else {}


def _version() -> str:
    """A digest of all that decides what is read from a record."""
    digest = hashlib.sha256(sys.version.encode())
    modules = [file for name in _CODE for file in sorted((_PACKAGE / name).rglob("*.py"))]
    for file in (*modules, _SCHEMA):
        digest.update(file.name.encode() + b"\0" + bounded.read_bytes(file))
    return digest.hexdigest()


#: All that a run consists of, by module and name.
_CLASSES: dict[tuple[str, str], Callable[..., Any]] = {
    (module.__name__, name): value
    for module in (*_MODULES, sys.modules[__name__])
    for name, value in vars(module).items()
    if isinstance(value, type) and value.__module__ == module.__name__
}


class _Unpickler(pickle.Unpickler):
    """Makes those and nothing else: a file that somebody else wrote must not run code."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _CLASSES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a run") from None
