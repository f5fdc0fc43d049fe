"""Folder of a data set of make-data.

The manifest states the request before the first file exists, and the result in the end. Files are
written whole, or not at all, so an interrupted call continues where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config.validation import ConfigError
from ...files import json_files
from ...files.whole_files import write_whole

MANIFEST = "framebench-data.json"
SPLITS = ("train", "val")
_HELD_OUT = 10


def held_out(count: int) -> int:
    """Return how many of ``count`` samples are for validation: one in _HELD_OUT, at least one."""
    return max(1, count // _HELD_OUT)


def claim(folder: Path, asked: Mapping[str, Any]) -> None:
    """Write the request to a new folder. Raises ConfigError for a folder with other content."""
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        write_manifest(folder, asked, None)
        return
    try:
        before = json_files.read(folder / MANIFEST)["asked"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            f"data: found {folder}, which holds other files; allowed: a folder that is empty, or "
            "not there, or one that make-data has begun"
        ) from None
    if before != asked:
        raise ConfigError(
            f"data: found {folder}, which holds data of {before}; asked for: {asked}; allowed: the "
            "same, or another folder"
        )
    for path in folder.rglob(".*"):
        path.unlink()  # an incomplete file


def write_manifest(folder: Path, asked: Mapping[str, Any], made: Any) -> None:
    """Write the manifest. ``made``: summary of the files, None until complete."""
    text = json.dumps({"asked": asked, "made": made}, indent=1)
    write_whole(folder / MANIFEST, text + "\n")
