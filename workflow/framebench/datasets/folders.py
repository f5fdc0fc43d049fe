"""A folder that make_data makes a data set in: whose it is, what was asked for, what was made.

1. The folder is locked: another call that makes data there at the same time is refused.
2. The manifest says what is asked for, before the first file is there.
3. Each file is written whole, or not at all.
4. The manifest says what was made.

A call that was ended goes on where it was. A folder with anything else in it is left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..files import json_files
from ..files.whole_files import write_whole

FORMAT = "framebench-data-1"
MANIFEST = "framebench-data.json"
SPLITS = ("train", "val")


class DataSetError(Exception):
    """The data set cannot be made there; the message says why, and what is allowed."""


@contextmanager
def claimed(folder: Path, asked: Mapping[str, Any], wanted: Collection[str]) -> Iterator[None]:
    """Make the folder ours, for files of these names below it. Raises :class:`Refused` for one
    that is not, and OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataSetError(
                f"data: found {folder}, where another make_data is at work; allowed: when it has "
                "ended, or another folder"
            ) from None
        _claim(folder, asked, wanted)
        yield
    finally:
        os.close(handle)


def write_manifest(folder: Path, asked: Mapping[str, Any], made: Any) -> dict[str, Any]:
    """Returns it. ``made``: None as long as it is not all there."""
    manifest = {"format": FORMAT, "asked": asked, "made": made}
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return manifest


def _claim(folder: Path, asked: Mapping[str, Any], wanted: Collection[str]) -> None:
    manifest = folder / MANIFEST
    entries = sorted(path.name for path in folder.iterdir())
    if not entries:
        write_manifest(folder, asked, None)
        return
    if MANIFEST not in entries:
        raise DataSetError(
            f"data: found {folder}, which holds {entries[0]}; allowed: a folder that is empty, or "
            "not there, or one that make_data has begun"
        )
    before = _asked_before(manifest)
    if before != asked:
        keys = [key for key in {**asked, **before} if before.get(key) != asked.get(key)]
        keys = keys[:20]
        was = ", ".join(f"{key} {str(before.get(key))[:80]}" for key in keys)
        now = ", ".join(f"{key} {asked.get(key)}" for key in keys)
        raise DataSetError(
            f"data: found {folder}, which holds data of {was}; asked for: {now}; allowed: the "
            "same, or another folder"
        )
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix()
        if path.name.startswith("."):
            path.unlink()  # a file that was not written to its end
        elif name not in wanted and name != MANIFEST:
            raise DataSetError(
                f"data: found {path}, which make_data did not make; allowed: its files alone"
            )


def _files(folder: Path) -> Iterator[Path]:
    for place, _, files in os.walk(folder):
        yield from (Path(place, name) for name in files)


def _asked_before(manifest: Path) -> Mapping[str, Any]:
    try:
        content = json_files.read(manifest)
        if content["format"] == FORMAT:
            return dict(content["asked"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise DataSetError(f"data: found {manifest}, which is no manifest of make_data")
