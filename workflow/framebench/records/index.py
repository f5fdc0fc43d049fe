"""Index of parsed records, so that thousands of them need not be parsed again.

The index is a cache: it may be deleted at any time, and any fault makes it empty. An entry is valid
while the record's inode, size and times are unchanged. A copied folder has other inodes, so an
index that came with it is ignored.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from core import axes, bounded
from pydantic import TypeAdapter

from ..files import whole_files
from .run import Run

_PACKAGE = Path(__file__).parents[1]
#: Code that parses a run; an index of other code is ignored.
CODE = ("cases", "config", "files", "machine", "records", "statistics")
SCHEMA = _PACKAGE.parent / "schemas" / "record.schema.json"
#: Largest size in bytes; 10,000 runs of 100 steps take 58 MB.
LARGEST = 2**29
#: Age in ns from which a file is indexed. A younger file may change within the same clock tick,
#: unnoticed.
SETTLED_NS = 2 * 10**9

#: Paths of records in entries, which are not written.
_PATHS: Any = {"__all__": {1: {"record"}}}
#: Device, inode, size, and the last changes of content and inode (ns).
State = tuple[int, int, int, int, int]


class Entry(NamedTuple):
    """An indexed run, written without its path; ``digest``: SHA-256 of the file's content, in
    hexadecimal."""

    state: State
    run: Run
    digest: str


class Index:
    """Entries by the path of their record below the records folder."""

    def __init__(self, file: Path, writes: bool = True) -> None:
        """Read the index in ``file``, whose folder is never created. ``writes``: whether
        :meth:`keep` writes."""
        self._file, self._writes = file, writes
        self._before = _load(file)
        self._now: dict[str, Entry] = {}
        self._is_changed = False

    def get(self, file: Path, origin: str) -> Entry | None:
        """Return the entry of ``file``, with its path in the run; None if the file has changed."""
        entry = self._before.get(origin)
        if entry is None or entry.state != _state(file):
            return None
        self._now[origin] = entry
        return entry._replace(run=replace(entry.run, record=file))

    def add(self, file: Path, origin: str, read: Run, digest: str) -> None:
        """Add a run that was just read. Raises OSError if the file has vanished."""
        state = _state(file)
        if time.time_ns() - max(state[3:]) > SETTLED_NS:
            self._now[origin] = Entry(state, read, digest)
            self._is_changed = True

    def keep(self) -> None:
        """Write the index if it has changed. A folder that is not writable gets none."""
        if self._writes and (self._is_changed or len(self._now) != len(self._before)):
            entries = _entries().dump_json(self._now, exclude=_PATHS, exclude_defaults=True)
            content = b"%s\n%s" % (first_line(entries), entries)
            try:
                if self._file.parent.is_dir():
                    whole_files.write_whole_bytes(self._file, content)
            except OSError:
                pass


def _state(file: Path) -> State:
    stat = os.stat(file)
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _load(file: Path) -> dict[str, Entry]:
    try:
        head, _, entries = bounded.read_bytes(file, LARGEST).partition(b"\n")
        return _entries().validate_json(entries) if head == first_line(entries) else {}
    except (OSError, ValueError):  # missing, or arbitrary bytes
        return {}


@cache
def _entries() -> TypeAdapter[dict[str, Entry]]:
    """Return the JSON adapter of entries, with the types of all fields of a run."""
    return TypeAdapter(dict[str, Entry])


def first_line(entries: bytes) -> bytes:
    """Return the first line of the file: digest of the parsing code, and checksum of the
    entries."""
    return f"{code_digest(CODE, SCHEMA)} {hashlib.sha256(entries).hexdigest()}".encode()


def code_digest(packages: Sequence[str], *files: Path) -> str:
    """Return a digest of the code that determines the index's content: ``packages`` of the driver,
    ``core``, a user's axes, Python and further ``files``."""
    digest = hashlib.sha256(sys.version.encode())
    folders = [*(_PACKAGE / name for name in packages), Path(axes.__file__).parent]
    digest.update(repr([(axis.name, axis.default) for axis in axes.further()]).encode())
    named = {
        f"{folder.name}/{file.relative_to(folder).as_posix()}": file
        for folder in folders
        for file in sorted(folder.rglob("*.py"))
    }
    for name, file in (*named.items(), *((file.name, file) for file in files)):
        digest.update(name.encode() + b"\0" + bounded.read_bytes(file))
    return digest.hexdigest()
