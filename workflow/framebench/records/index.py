"""What was read from records before, so that thousands of them need not be parsed again.

An index is no more than a shortcut: it is made of the records, may be deleted at any time, and
whatever is wrong with it makes it empty. Of a record it knows the run that was read from it, as
long as the file is the very same: its inode, size and times are. A copied folder has other inodes,
so an index that came with results from elsewhere says nothing of them.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from core import axes
from pydantic import TypeAdapter

from ..files import bounded, whole_files
from .run import Run

_PACKAGE = Path(__file__).parents[1]
#: What a run is read by; the index of any other code is none.
_CODE = ("cases", "files", "machine", "records")
_SCHEMA = _PACKAGE.parent / "schemas" / "record.schema.json"
#: Bytes; 10,000 runs of 100 steps take 58 MB.
_LARGEST = 2**29
#: A file that was written within the same tick of the clock as it was read may have changed since
#: with nothing to show for it.
_SETTLED_NS = 2 * 10**9

#: Device, inode, size, and when content and inode were changed last (ns).
State = tuple[int, int, int, int, int]


class Entry(NamedTuple):
    """``run`` is without its path; ``digest``: SHA-256 of the file's content, in hexadecimal."""

    state: State
    run: Run
    digest: str


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

    def add(self, file: Path, origin: str, read: Run, digest: str) -> None:
        """Note what has just been read. Raises OSError where the file has vanished."""
        state = _state(file)
        if time.time_ns() - max(state[3:]) > _SETTLED_NS:
            self._now[origin] = Entry(state, replace(read, record=None), digest)
            self._is_changed = True

    def keep(self) -> None:
        """Write it down if it says something else than before. A folder that cannot be written to
        goes without."""
        if self._writes and (self._is_changed or len(self._now) != len(self._before)):
            entries = _entries().dump_json(self._now, exclude_defaults=True)
            content = b"%s\n%s" % (_head(entries), entries)
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
        head, _, entries = bounded.read_bytes(file, _LARGEST).partition(b"\n")
        return _entries().validate_json(entries) if head == _head(entries) else {}
    except (OSError, ValueError):  # there is none yet, or whatever bytes there are
        return {}


@cache
def _entries() -> TypeAdapter[dict[str, Entry]]:
    """Reads and writes entries as JSON, with the types of all that a run consists of."""
    return TypeAdapter(dict[str, Entry])


def _head(entries: bytes) -> bytes:
    """The first line: by which code the entries were read, and their checksum."""
    return f"{_version()} {hashlib.sha256(entries).hexdigest()}".encode()


def _version() -> str:
    """A digest of all that decides what is read from a record."""
    digest = hashlib.sha256(sys.version.encode())
    folders = [*(_PACKAGE / name for name in _CODE), Path(axes.__file__).parent]
    modules = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    digest.update(repr([(axis.name, axis.default) for axis in axes.further()]).encode())
    for file in (*modules, _SCHEMA):
        digest.update(file.name.encode() + b"\0" + bounded.read_bytes(file))
    return digest.hexdigest()
