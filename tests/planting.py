"""Faults planted in a copy of source files, to show that something finds them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Change(NamedTuple):
    """Change of one file, by its path in a folder: a text that stands there and its
    replacement."""

    file: str
    right: str
    wrong: str


def change(folder: Path, changes: Iterable[Change]) -> None:
    """Apply ``changes`` to files in ``folder``. Raises AssertionError where a text does not stand
    in its file."""
    for file, right, wrong in changes:
        text = (folder / file).read_text()
        assert right in text, f"cannot be planted: {file} has no {right!r}"
        (folder / file).write_text(text.replace(right, wrong))
