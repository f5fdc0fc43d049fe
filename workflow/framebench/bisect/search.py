"""Binary search for the version that changed a figure; it continues from known results.

1. The first version is the good one: it has not changed. The last one is looked at first; without a
   change there the search is at its end.
2. Between the latest that is known not to have changed and the earliest that is known to have, the
   one in the middle is next. One that is skipped is no answer: then it is the one nearest to it.
3. A version of which it cannot be told ends the search until more is measured: what it is decides
   on which side to go on.
4. At the end, the change came with the earliest that has changed, or with one of those before it
   that were skipped.

Where a figure has changed and changed back, this finds one version that changed it, not the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

CHANGED, UNCHANGED, SKIPPED, OPEN = "changed", "not changed", "skipped", "cannot tell"


@dataclass(frozen=True)
class BisectStep:
    """What is known of a version. ``state``: one of the above; ``ratio``: over the good one, above
    1 is better; ``needed``: pairs, of one of which it cannot be told, None where no number would
    do; ``moved``: what else has another version than in the environment of the good one."""

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
    """``before``: the latest that has not changed; ``changed``: the earliest that has, "" where
    none is known. ``skipped``: those between both that say nothing, or the last one, of which
    nothing is known then. ``following``: what is to be looked at; "" where the search is at its end
    or waits for ``open``, of which it cannot be told. ``path``: what was asked for, in its order.
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
    while places := [place for place in range(low + 1, high) if place not in skipped]:
        place = min(places, key=lambda one: (abs(2 * one - low - high), one))
        version = versions[place]
        state = known.get(version, "")
        path += [version] if state else []
        if state == CHANGED:
            high = place
        elif state == UNCHANGED:
            low = place
        elif state == SKIPPED:
            skipped.add(place)
        else:
            now = BisectState(versions[low], versions[high], path=tuple(path))
            opened = state == OPEN
            return replace(now, open=version) if opened else replace(now, following=version)
    between = tuple(versions[low + 1 : high])
    return BisectState(versions[low], versions[high], between, path=tuple(path))


def most_steps(versions: Sequence[str]) -> int:
    """Return the largest number of versions to test, if none is skipped."""
    return 1 + max(0, (len(versions) - 2).bit_length())
