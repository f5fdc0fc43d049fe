"""Step of a bisection: one version against the good one, measured in pairs and decided as by a
gate."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....config.settings import Settings
from ....config.validation import ConfigError
from ....config.values import RecordSource
from ....environments import hashes, locking, other_version, software
from ....environments.venvs import EnvironmentFile, read_environment_file
from ....files import json_files
from ....files.locks import LockError
from ....files.whole_files import write_whole
from ....records.run import RecordsError
from ....runs import ensure_environment
from ....statistics.verdicts import CANNOT_TELL
from ....tables.judged import grouped
from ....tables.results import CaseResults
from .. import decisions, measuring
from ..decisions import Decision
from ..measuring import BASE, CANDIDATE, Measuring
from ..sides import VariantSide
from .search import CHANGED, OPEN, SKIPPED, UNCHANGED, BisectStep

#: File in the folder of a step: largest number of pairs that it was measured with.
NOTED = "measured.json"


class Absent(Exception):
    """Version that cannot be installed, with the reason."""


@dataclass(frozen=True)
class BisectSetup:
    """Common settings of all steps.
    ``own``: environment file of the ``framework``; ``case``: in the plan's notation; ``suite``:
    content of the suite file; ``margin``: a fraction; ``config``, ``words``: arguments of
    Snakemake; ``folder``: results folder."""

    framework: str
    package: str
    case: str
    good: str
    own: EnvironmentFile
    settings: Settings
    suite: Mapping[str, Any]
    margin: float
    pairs: int
    config: Sequence[str]
    words: Sequence[str]
    folder: Path

    def environment(self, version: str) -> EnvironmentFile:
        """Return the environment file of a version, after creating and building it where needed.
        It has hashes if they are required. Raises :class:`Absent` if that fails."""
        path = self.folder / "environments" / f"{self.package}-{version}.yaml"
        try:
            if not path.is_file():
                other_version.derive(self.own, self.package, version, path)
            hashed = self.settings.require_hashes
            if hashed and not hashes.are_there(path):
                self._lock(path)
            found = read_environment_file(path, hashed)
            if not self.settings.node_local:
                place = software.from_file(found, self.settings)
                assert place.marker is not None, "without --sdm we make it"
                ensure_environment.ensure(path, place.marker, hashed)
        except (ConfigError, LockError) as error:
            raise Absent(" ".join(str(error).split())) from None
        except subprocess.CalledProcessError as error:
            raise Absent(f"uv ended with {error.returncode}: what it says stands above") from None
        return found

    def _lock(self, path: Path) -> None:
        if exempt := hashes.exemption(self.own.path):
            write_whole(path.with_name(path.stem + hashes.SUFFIX), f"# exempt: {exempt}\n")
        else:
            locking.lock(path)

    def look(self, version: str, slower: bool | None) -> BisectStep:
        """Test a version, using existing measurements where they are enough.
        ``slower``: whether the bad version is slower; None for the bad version itself. Raises
        RecordsError if the good version has no figure, and what :class:`Measuring` raises."""
        try:
            good = self.environment(self.good)
        except Absent as error:
            raise RecordsError(
                f"{self.package} {self.good}: cannot be installed: {error}"
            ) from None
        try:
            other = self.environment(version)
        except Absent as error:
            return BisectStep(version, SKIPPED, f"cannot be installed: {error}")
        changes = other_version.moved(good, other).items()
        moved = "; ".join(f"{name} {way}" for name, way in changes if name != self.package)
        folder = self.folder / version
        if there := _noted(folder):
            step = self._judged(version, folder, slower)
            if step.state != OPEN or there >= self.pairs:
                return replace(step, moved=moved)
        self._measure(good, other, folder)
        write_whole(folder / NOTED, json.dumps({"pairs": self.pairs}) + "\n")
        return replace(self._judged(version, folder, slower), moved=moved)

    def _measure(self, good: EnvironmentFile, other: EnvironmentFile, folder: Path) -> None:
        sides = [
            VariantSide(
                file.path.stem, {"environments": {self.framework: str(file.path)}}, file.digest
            )
            for file in (good, other)
        ]
        names = ",".join(f"{self.case} variant {side}" for side in (BASE, CANDIDATE))
        config = [*self.config, f"frameworks={self.framework}", f"cases={names}"]
        until_decided = {"margin": self.margin, "at_most": self.pairs, "two_sided": True}
        plan = Measuring(self.suite, until_decided, config, self.words, folder)
        plan.measure(*sides)

    def _judged(self, version: str, folder: Path, slower: bool | None) -> BisectStep:
        runs = measuring.runs_of(folder)
        good, other = (principal(grouped(RecordSource(runs, side))) for side in (BASE, CANDIDATE))
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


def _step(version: str, down: Decision, asked: Sequence[Decision]) -> BisectStep:
    estimate, verdicts = down.estimate, [one.verdict for one in asked]
    if estimate is None:
        return BisectStep(version, SKIPPED, down.reason)
    state = OPEN
    if decisions.REGRESSION in verdicts:
        state = CHANGED
    elif set(verdicts) == {decisions.WITHIN}:
        state = UNCHANGED
    needed, reason = None, ""
    if state == OPEN:
        unsure = [one for one in asked if one.verdict == CANNOT_TELL]
        wanted = [one.needed for one in unsure]
        needed = None if None in wanted else max(one for one in wanted if one is not None)
        reason = next(one.reason for one in unsure if one.needed == needed)
    return BisectStep(
        version, state, reason, estimate.ratio, estimate.interval, estimate.pairs, needed
    )
