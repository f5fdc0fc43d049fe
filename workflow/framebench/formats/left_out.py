"""Lines that say what an import did not take: every figure and every file, with the reason."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .source import ImportedFile

#: Names in one line; beyond that, those that differ in a number alone are counted together.
_MOST_NAMES = 12


def lines(
    path: Path, files: Sequence[ImportedFile], refused: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Say for each reason what was left out for it. ``refused``: reason and path of files."""
    figures = (one for source in files for one in source.left_out)
    for reason, names in _by_reason(figures):
        yield f"not taken: {_shown(names)}: {reason}"
    within = str(path / "_")[:-1]
    for reason, names in _by_reason(refused):
        shown = ", ".join(name.replace(within, "") for name in names)
        yield f"left out: {shown}{reason}"


def _by_reason(left: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Counter[str]]]:
    by_reason: dict[str, Counter[str]] = defaultdict(Counter)
    for reason, name in left:
        by_reason[reason][name] += 1
    yield from by_reason.items()


def _shown(names: Counter[str]) -> str:
    if len(names) > _MOST_NAMES:
        grouped: Counter[str] = Counter()
        for name, count in names.items():
            grouped[re.sub(r"\d+", "N", name)] += count
        names = grouped
    return ", ".join(f"{name} ({count})" if count > 1 else name for name, count in names.items())
