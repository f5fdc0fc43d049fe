"""Names of attempts: NAME, NAME-retry1, NAME-retry2 .., so that no earlier file is replaced.
Runs on any Python that the harness supports, because its importers do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NAME = re.compile(r"(.+?)(?:-retry([0-9]+))?")
_REPEAT = re.compile(r"r([0-9]+)(?:-retry([0-9]+))?")


def attempt_name(name: str, attempt: int) -> str:
    """Return the name of an attempt; attempt 0 has the plain name."""
    return f"{name}-retry{attempt}" if attempt else name


def split_attempt(stem: str) -> tuple[str, int]:
    """Split a stem into plain name and number of the attempt: ``b8-retry2`` -> (b8, 2)."""
    match = _NAME.fullmatch(stem)
    return (match[1], int(match[2] or 0)) if match else (stem, 0)


def repeat_and_attempt(stem: str) -> tuple[int, int] | None:
    """Parse the name of a run's record: ``r3-retry2`` -> (3, 2); None for other names."""
    match = _REPEAT.fullmatch(stem)
    return (int(match[1]), int(match[2] or 0)) if match else None


def newest_attempt(folder: Path, name: str, read: Callable[[Path], Any]) -> tuple[str, Any]:
    """Return the name (without ``.json``) of the newest attempt below ``folder`` for which ``read``
    returns a value, and that value. Without one, return the next free name and None."""
    attempts = 0
    while os.path.lexists(folder / f"{attempt_name(name, attempts)}.json"):
        attempts += 1
    for attempt in reversed(range(attempts)):
        tried = attempt_name(name, attempt)
        if (found := read(folder / f"{tried}.json")) is not None:
            return tried, found
    return attempt_name(name, attempts), None
