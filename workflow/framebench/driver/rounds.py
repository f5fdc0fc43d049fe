"""Records that a call makes, and the rounds that decide what is measured next."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path
from typing import Any

from snakemake.exceptions import IncompleteCheckpointException

from ..plan import targets
from ..plan.job import record_of
from ..plan.planning import PlannedRun
from .call import Wildcards, checked
from .work import Work


class Rounds:
    """Runs and searches of a call, and the rounds that add some."""

    def __init__(self, work: Work, checkpoints: Any) -> None:
        self._work, self._checkpoints = work, checkpoints
        self._planned = self._records(work.listed)
        self._searches = [record_of(work.results, "search", name) for name in work.searches]
        self._further: dict[int, list[str]] = {}
        # Without pending runs the plan is final. Decided once: the reserve shrinks.
        self._may_go_on: bool | None = None
        if not work.shows:
            self._check(work)
        # Markers of an earlier call are stale.
        for marker in Path(work.results, "logs/rounds").glob("*.txt") if work.is_locked else ():
            marker.unlink(missing_ok=True)

    @staticmethod
    def _check(work: Work) -> None:
        """End the call if it cannot measure as it is asked to."""
        work.check("a target that measures")
        checked(targets.check_runs, work.plan)
        checked(work.check_total)

    def before(self, wildcards: Wildcards) -> list[str]:
        """Return the files that a round needs before it decides.

        Round 0 needs the batch searches, round 1 the planned runs, later rounds the runs of the
        round before. With a time budget they need the checks of these runs, too: what these take is
        spent.
        """
        number = int(wildcards.number)
        if number == 0:
            return self._work.inputs(self._searches)
        planned = self._planned if number == 1 else []
        asked = self._asked_by(number - 1) if number > 1 or self._work.searches else []
        checks = self._work.checks if self._work.plan.settings.budget else []
        return self._work.inputs([*planned, *asked, *checks])

    def page(self, wildcards: Wildcards, framebench: list[str]) -> str:
        """Return the command that makes tables and report of the runs so far, before a round.

        Only a call with a time budget makes a page that early; ":" does nothing.
        """
        work = self._work
        if not work.plan.settings.budget or wildcards.number == "0":
            return ":"
        arguments = [*framebench, "report", "--records", f"{work.results}/runs"]
        return shlex.join([*arguments, "--results", work.results, "--before-round"])

    @property
    def records(self) -> list[str]:
        """All records that the call makes.

        These are the planned runs and searches, then the runs with the largest batches. Further
        rounds follow while a case of ``repeats: auto`` has too wide an interval, one of a
        performance gate is undecided, or a run was disturbed that is to be repeated.
        """
        wanted = [*self._planned, *self._searches]
        try:
            wanted += self._asked_by(0) if self._work.searches else []
            if self._may_go_on is None:
                plan = self._work.plan
                self._may_go_on = bool(
                    plan.pending and (plan.reserve or plan.settings.rerun_disturbed)
                )
            for number in itertools.count(1) if self._may_go_on else ():
                further = self._asked_by(number)
                if not further:
                    break
                wanted += further
        except IncompleteCheckpointException as waiting:
            # Known files need not wait for the checkpoint.
            # Flagged as a target of a checkpoint, it would hide other changes from Snakemake.
            wanted.append(str(waiting.targetfile))
        return self._work.inputs(wanted)

    def _asked_by(self, number: int) -> list[str]:
        """Return the records that a round adds, decided once when its checkpoint is done.

        Round 0 adds runs with the largest batches, later rounds add repeats by the intervals.
        """
        self._checkpoints.round.get(number=number)
        if number not in self._further:
            work = self._work
            runs = work.add_further_runs() if number else work.add_runs_with_largest_batch()
            work.on_growth(runs)
            self._further[number] = self._records(runs)
        return self._further[number]

    def _records(self, runs: list[PlannedRun]) -> list[str]:
        return [record_of(self._work.results, "run", run.name) for run in runs]
