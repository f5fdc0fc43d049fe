"""Names of attempts: NAME, then NAME-retry1, NAME-retry2 and so on, so that no earlier file is
replaced. For any Python that the harness runs on, as what imports it may be."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"(.+?)(?:-retry([0-9]+))?")
_REPEAT = re.compile(r"r([0-9]+)(?:-retry([0-9]+))?")


def attempt_name(name: str, attempt: int) -> str:
    """The name of an attempt; the first, number 0, has the plain one."""
    return f"{name}-retry{attempt}" if attempt else name


def split_attempt(stem: str) -> tuple[str, int]:
    """The plain name and the number of the attempt: ``b8-retry2`` -> (b8, 2)."""
    match = _NAME.fullmatch(stem)
    return (match[1], int(match[2] or 0)) if match else (stem, 0)


def repeat_and_attempt(stem: str) -> tuple[int, int] | None:
    """Parse the name of a run's record: ``r3-retry2`` -> (3, 2); None for other names."""
    match = _REPEAT.fullmatch(stem)
    return (int(match[1]), int(match[2] or 0)) if match else None


def next_attempt(stem: str, folder: Path) -> int:
    """The number of the first attempt after that of ``stem`` that has no record in ``folder``."""
    name, attempt = split_attempt(stem)
    attempt += 1
    while (folder / f"{attempt_name(name, attempt)}.json").exists():
        attempt += 1
    return attempt
