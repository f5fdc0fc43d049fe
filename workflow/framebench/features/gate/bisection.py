"""Bisection: binary search for the version that changed a figure, by the gate's decisions.

The first version is the good one. The last one is tested first; if it has not changed, the search
ends. Then the middle between the latest unchanged and the earliest changed version is tested, or,
if that is skipped, the nearest one. If a figure changed and changed back, one of the changes is
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...records.run import RecordsError
from ...statistics import sequential
from ...tables.results import CaseResults
from . import decisions

CHANGED, UNCHANGED, SKIPPED, OPEN = "changed", "not changed", "skipped", "cannot tell"


class BisectState(NamedTuple):
    """Positions of the latest unchanged version, of the earliest changed one, and of the version to
    test next; None at the end. At the end, versions between both were skipped."""

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


@dataclass(frozen=True)
class BisectStep:
    """Result of one version.

    ``ratio``: over the good version, above 1 is better; ``next_look``: pairs after which an
    undecided version may be decided."""

    version: str
    state: str
    reason: str = ""
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    pairs: int = 0
    next_look: int | None = None

    def __str__(self) -> str:
        """Return ``2.12.1: changed: 0.930 [0.912, 0.951], 12 pairs``."""
        ends = f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]" if self.interval else ""
        figures = f"{self.ratio:.3f}{ends}, {self.pairs} pairs" if self.ratio is not None else ""
        return ": ".join(filter(None, (self.version, self.state, figures, self.reason)))


def judge(version: str, good: CaseResults, other: CaseResults, margin: float) -> BisectStep:
    """Judge a version: changed if it is shown to be slower than the good one by more than the
    margin, or the good one slower than it. Raises RecordsError if the good version has no figure.
    """
    for result in good.values():
        if result.compared is None:
            raise RecordsError(f"the good version is {result.why_not_compared}")
    if not good:
        raise RecordsError("the good version has no run")
    (down, *_), (up, *_) = (
        decisions.decide(*sides, margin, at_looks=True) for sides in ((good, other), (other, good))
    )
    if (estimate := down.estimate) is None:
        return BisectStep(version, SKIPPED, down.reason)
    step = BisectStep(version, UNCHANGED, "", estimate.ratio, estimate.interval, estimate.pairs)
    verdicts = {down.verdict, up.verdict}
    if decisions.REGRESSION in verdicts:
        return replace(step, state=CHANGED)
    if verdicts == {decisions.WITHIN}:
        return step
    looks = [one.next_look for one in (down, up) if one.verdict != decisions.WITHIN]
    return replace(step, state=OPEN, next_look=looks[0] or sequential.LOOKS[-1])
