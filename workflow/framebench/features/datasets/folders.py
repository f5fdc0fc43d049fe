"""Folder of a data set of make-data. Its manifest, written last, has request and result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config.validation import ConfigError
from ...files.whole_files import write_whole

MANIFEST = "framebench-data.json"
SPLITS = ("train", "val")
_HELD_OUT = 10


def held_out(count: int) -> int:
    """Return how many of ``count`` samples are for validation: one in _HELD_OUT, at least one."""
    return max(1, count // _HELD_OUT)


def claim(folder: Path) -> None:
    """Make an empty folder. Raises ConfigError for a folder with content."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(
            f"--folder: found {folder}, which holds files; allowed: a folder that is empty or not "
            "there"
        )


def write_manifest(folder: Path, asked: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """Write the manifest. ``asked``: request; ``made``: summary of the files."""
    text = json.dumps({"asked": asked, "made": made}, indent=1)
    write_whole(folder / MANIFEST, text + "\n")
