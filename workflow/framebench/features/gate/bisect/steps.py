"""Step of a bisection: one version against the good one, measured in pairs and decided as by a
gate."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....files import json_files
from ....files.whole_files import write_whole
from ....records.run import RecordsError
from ....statistics.verdicts import CANNOT_TELL
from ....tables.results import CaseResults
from .. import decisions, measuring
from ..built_environments import Absent
from ..decisions import Decision
from ..measuring import BASE, CANDIDATE, Measuring
from .candidates import Candidates, ModelVersions, file_name
from .search import CHANGED, OPEN, SKIPPED, UNCHANGED, BisectStep

#: File in the folder of a step: largest number of pairs that it was measured with.
NOTED = "measured.json"


@dataclass(frozen=True)
class BisectSetup:
    """Common settings of all steps.
    ``case``: of the good candidate, in the plan's notation; ``suite``: content of the suite file;
    ``margin``: a fraction; ``config``, ``words``: arguments of Snakemake; ``folder``: results
    folder."""

    candidates: Candidates
    case: str
    suite: Mapping[str, Any]
    margin: float
    pairs: int
    config: Sequence[str]
    words: Sequence[str]
    folder: Path

    def look(self, version: str, slower: bool | None) -> BisectStep:
        """Test a version, using existing measurements where they are enough.
        ``slower``: whether the bad version is slower; None for the bad version itself. Raises
        RecordsError if the good version has no figure, and what :class:`Measuring` raises."""
        candidates = self.candidates
        good = candidates.names[0]
        try:
            base = candidates.side(good)
        except Absent as error:
            raise RecordsError(f"{good}: cannot be installed: {error}") from None
        try:
            other = candidates.side(version)
        except Absent as error:
            return BisectStep(version, SKIPPED, f"cannot be installed: {error}")
        moved, folder = candidates.moved(version), self.folder / file_name(version)
        if there := _noted(folder):
            step = self.judge(version, slower)
            if step.state != OPEN or there >= self.pairs:
                return replace(step, moved=moved)
        named = zip((BASE, CANDIDATE), (good, version), strict=True)
        cases = [f"{candidates.case(name, self.case)} variant {side}" for side, name in named]
        until_decided = {"margin": self.margin, "at_most": self.pairs, "two_sided": True}
        config = [*self.config, f"cases={','.join(cases)}"]
        Measuring(self.suite, until_decided, config, self.words, folder).measure(base, other)
        write_whole(folder / NOTED, json.dumps({"pairs": self.pairs}) + "\n")
        return replace(self.judge(version, slower), moved=moved)

    def judge(self, version: str, slower: bool | None) -> BisectStep:
        """Return the state of a version by the pairs measured so far."""
        good, other = map(principal, measuring.results(self.folder / file_name(version)))
        if isinstance(self.candidates, ModelVersions):
            name = self.candidates.subject
            good, other = measuring.called(good, name), measuring.called(other, name)
        return judge(version, good, other, self.margin, slower)


def _noted(folder: Path) -> int:
    """Return the limit of pairs of the last complete measurement; 0 without any."""
    try:
        return int(json_files.read(folder / NOTED)["pairs"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def principal(cases: CaseResults) -> CaseResults:
    """Return the principal figure of each case, by which it is compared."""
    return {
        key: result for key, result in cases.items() if any(run.key == key for run in result.runs)
    }


def judge(
    version: str, good: CaseResults, other: CaseResults, margin: float, slower: bool | None
) -> BisectStep:
    """Decide on one version by the gate's statistics.
    Changed: it is shown to be slower than the good version by more than the margin, or the good one
    slower than it. ``slower``: which of both counts; None for either. Raises RecordsError if the
    good version has no figure."""
    for result in good.values():
        if result.throughput is None:
            raise RecordsError(f"the good version is {result.status}: {result.reason}")
    if not good:
        raise RecordsError("the good version has no run")
    down = decisions.decide(good, other, margin, at_looks=True)[0]
    if down.verdict == decisions.BROKEN:
        return BisectStep(version, SKIPPED, down.reason)
    up = decisions.decide(other, good, margin, at_looks=True)[0]
    asked = {None: (down, up), True: (down,), False: (up,)}[slower]
    return _step(version, down, asked)


def halfway(bad: BisectStep, margin: float) -> float:
    """Return the margin that versions between the good and the ``bad`` one are judged by.

    It is half of the estimated change, on a logarithmic scale, and at least ``margin``: a large
    change is then found in few pairs."""
    ratio = bad.ratio or 1.0
    return max(margin, 1 - math.sqrt(min(ratio, 1 / ratio)))


def _step(version: str, down: Decision, asked: Sequence[Decision]) -> BisectStep:
    estimate, verdicts = down.estimate, [decision.verdict for decision in asked]
    if estimate is None:
        return BisectStep(version, SKIPPED, down.reason)
    state = OPEN
    if decisions.REGRESSION in verdicts:
        state = CHANGED
    elif set(verdicts) == {decisions.WITHIN}:
        state = UNCHANGED
    needed, reason = None, ""
    if state == OPEN:
        unsure = [decision for decision in asked if decision.verdict == CANNOT_TELL]
        wanted = [decision.needed for decision in unsure]
        needed = None if None in wanted else max(number for number in wanted if number is not None)
        reason = next(decision.reason for decision in unsure if decision.needed == needed)
    return BisectStep(
        version, state, reason, estimate.ratio, estimate.interval, estimate.pairs, needed
    )
