"""Folder of a data set of make-data, which is complete once its manifest is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config.validation import ConfigError
from ...files.whole_files import write_whole

MANIFEST = "framebench-data.json"
SPLITS = ("train", "val")


def sizes(count: int) -> dict[str, int]:
    """Return the samples of each split: one in ten is for validation, at least one."""
    validating = max(1, count // 10)
    return dict(zip(SPLITS, (count - validating, validating), strict=True))


def claim(folder: Path) -> None:
    """Make an empty folder. Raises ConfigError for a folder with content."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(
            f"--folder: found {folder}, which holds files; allowed: a folder that is empty or not "
            "there"
        )


def write_manifest(folder: Path, made: Mapping[str, Any]) -> None:
    """Write the manifest. ``made``: summary of the files."""
    write_whole(folder / MANIFEST, json.dumps({"made": made}, indent=1) + "\n")
