"""Binary search for the version that changed a figure; it continues from known results.

1. The first version is the good one, without the change. The last one is tested first; if it has
   not changed, the search ends.
2. The next version is in the middle between the latest unchanged one and the earliest changed one.
   If it is skipped, the nearest untested version follows.
3. A version that cannot be decided ends the search until more pairs are measured: it decides on
   which side to continue.
4. At the end, the change came with the earliest changed version, or with one of the skipped
   versions before it.

If a figure changed and changed back, this finds one version that changed it, not the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

CHANGED, UNCHANGED, SKIPPED, OPEN = "changed", "not changed", "skipped", "cannot tell"


@dataclass(frozen=True)
class BisectStep:
    """Result of one version.
    ``state``: one of the above; ``ratio``: over the good version, above 1 is better; ``needed``:
    pairs that decide an undecided version, None if no number would; ``moved``: other packages whose
    version differs from the good version's environment."""

    version: str
    state: str
    reason: str = ""
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    pairs: int = 0
    needed: int | None = None
    moved: str = ""

    @property
    def slower(self) -> bool:
        return self.ratio is not None and self.ratio < 1


@dataclass(frozen=True)
class BisectState:
    """State of the search.

    ``before``: latest unchanged version; ``changed``: earliest changed one, "" if none is known;
    ``skipped``: skipped versions between both, or a skipped last version; ``following``: next
    version to test, "" if the search has ended or waits for ``open``, an undecided version;
    ``path``: tested versions, in order.
    """

    before: str
    changed: str = ""
    skipped: tuple[str, ...] = ()
    following: str = ""
    open: str = ""
    path: tuple[str, ...] = ()


def search(versions: Sequence[str], known: Mapping[str, str]) -> BisectState:
    """Return the state of the search.

    ``versions``: at least two, the first is good. ``known``: states of tested versions."""
    first, last = versions[0], versions[-1]
    if last not in known:
        return BisectState(first, following=last)
    if known[last] != CHANGED:
        skipped_last = (last,) if known[last] == SKIPPED else ()
        opened_last = last if known[last] == OPEN else ""
        return BisectState(first, skipped=skipped_last, open=opened_last, path=(last,))
    low, high, path, skipped = 0, len(versions) - 1, [last], set[int]()
    while places := [index for index in range(low + 1, high) if index not in skipped]:
        index = min(places, key=lambda index: (abs(2 * index - low - high), index))
        version = versions[index]
        state = known.get(version, "")
        path += [version] if state else []
        if state == CHANGED:
            high = index
        elif state == UNCHANGED:
            low = index
        elif state == SKIPPED:
            skipped.add(index)
        else:
            now = BisectState(versions[low], versions[high], path=tuple(path))
            opened = state == OPEN
            return replace(now, open=version) if opened else replace(now, following=version)
    between = tuple(versions[low + 1 : high])
    return BisectState(versions[low], versions[high], between, path=tuple(path))


def most_steps(versions: Sequence[str]) -> int:
    """Return the largest number of versions to test, if none is skipped."""
    return 1 + max(0, (len(versions) - 2).bit_length())
