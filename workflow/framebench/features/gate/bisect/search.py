"""Binary search for the version that changed a figure.

The first version is the good one. The last one is tested first; if it has not changed, the search
ends. Then the middle between the latest unchanged and the earliest changed version is tested, or,
if that is skipped, the nearest one. If a figure changed and changed back, one of the changes is
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

CHANGED, UNCHANGED, SKIPPED, OPEN = "changed", "not changed", "skipped", "cannot tell"


class BisectState(NamedTuple):
    """Positions of the latest unchanged version, of the earliest changed one, and of the version to
    test next; None at the end. What lies between both then was skipped."""

    low: int
    high: int
    following: int | None


def search(count: int, known: Mapping[int, str]) -> BisectState:
    """Return the state of the search over ``count`` versions, of which ``known`` were tested."""
    low = max((at for at, state in known.items() if state == UNCHANGED), default=0)
    high = min((at for at, state in known.items() if state == CHANGED), default=count - 1)
    if high not in known:
        return BisectState(low, high, high)
    untested = [at for at in range(low + 1, high) if at not in known]
    following = min(untested, key=lambda at: (abs(2 * at - low - high), at), default=None)
    return BisectState(low, high, following)


def most_steps(count: int) -> int:
    """Return the largest number of versions to test, if none is skipped."""
    return 1 + max(0, (count - 2).bit_length())
