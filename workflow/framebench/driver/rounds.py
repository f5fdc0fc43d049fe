"""Records that a call makes, and the rounds that decide what is measured next."""

from __future__ import annotations

import functools
import itertools
import os
import shlex
from pathlib import Path
from typing import Any

from snakemake.exceptions import IncompleteCheckpointException

from ..plan import targets
from ..plan.jobs import record_of
from ..plan.planning import PlannedRun
from .call import checked
from .internals import Wildcards, for_rules
from .work import Work


class Rounds:
    """Runs and searches of a call."""

    def __init__(self, work: Work, checkpoints: Any, framebench: list[str]) -> None:
        """``framebench``: command that makes tables."""
        self._work, self._checkpoints, self._framebench = work, checkpoints, framebench
        self._planned = self._records(work.listed)
        self._searches = [record_of(work.results, "search", name) for name in work.searches]
        self._further: dict[int, list[str]] = {}
        #: Whether rounds follow; None before the searches. Decided once: the reserve shrinks.
        self._may_go_on: bool | None = None
        # Once, as they sum all jobs: Snakemake asks for all records several
        # times.
        self._check_own_model = functools.cache(lambda: checked(targets.check_own_model, work.plan))
        self._check_total = functools.cache(lambda: checked(work.check_total))
        # Markers of an earlier call are stale.
        for marker in Path(work.results, "logs/rounds").glob("*") if work.is_locked else ():
            marker.unlink(missing_ok=True)

    @for_rules
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

    @for_rules
    def page(self, wildcards: Wildcards) -> str:
        """Return the command that makes tables and report of the runs so far, before a round.

        Only a call with a time budget makes a page that early; ":" does nothing.
        """
        work = self._work
        if not work.plan.settings.budget or wildcards.number == "0":
            return ":"
        arguments = [*self._framebench, "report", "--records", f"{work.results}/runs"]
        return shlex.join([*arguments, "--results", work.results, "--before-round"])

    @for_rules
    def all(self, wildcards: Wildcards) -> list[str]:
        """Return all records that the call makes.

        These are the planned runs and searches, then the runs with the largest batches. Further
        rounds follow while a case of ``repeats: auto`` has too wide an interval, or one of a
        performance gate is undecided.
        """
        plan = self._work.plan
        checked(targets.check_measurement, plan, "a target that measures")
        checked(targets.check_runs, plan)
        checked(targets.check_arithmetic, plan, os.environ)
        checked(targets.check_allocators, plan)
        checked(targets.check_data, plan, self._work.catalog)
        self._check_own_model()
        if not self._further:
            self._check_total()
        wanted = [*self._planned, *self._searches]
        try:
            wanted += self._asked_by(0) if self._work.searches else []
            if self._may_go_on is None:
                # Without pending runs the plan is final.
                self._may_go_on = bool(self._work.plan.reserve and self._work.plan.pending)
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
        self._checkpoints.round.get(state=self._work.state, number=number)
        if number not in self._further:
            work = self._work
            runs = work.add_further_runs() if number else work.add_runs_with_largest_batch()
            work.grow(runs)
            self._further[number] = self._records(runs)
        return self._further[number]

    def _records(self, runs: list[PlannedRun]) -> list[str]:
        return [record_of(self._work.results, "run", run.name) for run in runs]
