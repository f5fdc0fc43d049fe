"""Folder of a data set of make-data: ownership, request and result.

1. The folder is locked: a second call that makes data there is refused.
2. The manifest states the request before the first file exists.
3. Each file is written whole, or not at all.
4. The manifest states the result.

An interrupted call continues where it stopped. A folder with other content is not touched.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...files import json_files
from ...files.whole_files import write_whole

FORMAT = "framebench-data-1"
MANIFEST = "framebench-data.json"
SPLITS = ("train", "val")
_HELD_OUT = 10


class DataSetError(Exception):
    """Data set that cannot be made, with the reason and what is allowed."""


@contextmanager
def claimed(folder: Path, asked: Mapping[str, Any], wanted: Collection[str]) -> Iterator[None]:
    """Lock a folder for a data set with files of these names.
    Raises :class:`DataSetError` for a folder with other content, and OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataSetError(
                f"data: found {folder}, where another make-data is at work; allowed: when it has "
                "ended, or another folder"
            ) from None
        _claim(folder, asked, wanted)
        yield
    finally:
        os.close(handle)


def write_manifest(folder: Path, arguments: Mapping[str, Any], made: Any) -> dict[str, Any]:
    """Write and return the manifest. ``made``: summary of the files, None until complete."""
    manifest = {"format": FORMAT, "asked": arguments, "made": made}
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return manifest


def split_texts(tokens: int, each: int) -> dict[str, range]:
    """Return the numbers of the texts of each split, for so many tokens in texts of ``each``.

    One of _HELD_OUT texts, at least one, is for validation. Raises :class:`DataSetError` for fewer
    than two texts."""
    count = -(-tokens // each)
    if count < 2:
        raise DataSetError(
            f"tokens: found {tokens}; allowed: more than {each}, a text of each split"
        )
    held_out = max(1, count // _HELD_OUT)
    return {"train": range(count - held_out), "val": range(count - held_out, count)}


def _claim(folder: Path, asked: Mapping[str, Any], wanted: Collection[str]) -> None:
    manifest = folder / MANIFEST
    entries = sorted(path.name for path in folder.iterdir())
    if not entries:
        write_manifest(folder, asked, None)
        return
    if MANIFEST not in entries:
        raise DataSetError(
            f"data: found {folder}, which holds {entries[0]}; allowed: a folder that is empty, or "
            "not there, or one that make-data has begun"
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
            path.unlink()  # an incomplete file
        elif name not in wanted and name != MANIFEST:
            raise DataSetError(
                f"data: found {path}, which make-data did not make; allowed: its files alone"
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
    raise DataSetError(f"data: found {manifest}, which is no manifest of make-data")
