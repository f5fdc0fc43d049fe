"""Records that a loader reads from the beginning of their file, and which of them are requested.

Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

import itertools
import os
from typing import List, NamedTuple, Sequence


class Read(NamedTuple):
    """Records to read in order.

    ``files``: paths. ``counts``: records from the beginning of each. ``selected``: whether each of
    these is requested."""

    files: List[str]
    counts: List[int]
    selected: List[bool]


def read_of(paths: Sequence[str]) -> Read:
    """Return the records to read. ``paths``: FILE/NUMBER of each record, those of a file
    consecutive and ascending."""
    plan = Read([], [], [])
    for file, pairs in itertools.groupby(map(os.path.split, paths), lambda pair: pair[0]):
        numbers = [int(number) for _, number in pairs]
        assert numbers == sorted(numbers), "a file is read from its beginning"
        asked = set(numbers)
        plan.files.append(file)
        plan.counts.append(numbers[-1] + 1)
        plan.selected.extend(number in asked for number in range(numbers[-1] + 1))
    return plan


def to_the_end(read: Read, totals: Sequence[int]) -> Read:
    """Return the records to read by a loader that reads each file but the last to its end.
    ``totals``: records in each."""
    counts, selected, first = [*totals[:-1], read.counts[-1]], [], 0  # type: List[int], List[bool], int
    for count, total in zip(read.counts, counts):
        selected += read.selected[first : first + count] + [False] * (total - count)
        first += count
    return Read(read.files, counts, selected)
