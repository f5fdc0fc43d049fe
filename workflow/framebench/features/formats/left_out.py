"""Lines about figures and files that an import skipped, with reasons."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .source import ImportedFile

#: Most names in one line. Beyond that, names that differ only in a number are counted together.
_MOST_NAMES = 12


def lines(
    path: Path, files: Sequence[ImportedFile], refused: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Yield a line per reason, with the figures or files skipped for it.

    ``refused``: reason and path of each skipped file."""
    figures = (item for source in files for item in source.left_out)
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
