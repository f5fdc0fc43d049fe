"""Records that a call makes, and the rounds that decide what is measured next."""

from __future__ import annotations

import itertools
import shlex
from typing import Any

from snakemake.exceptions import IncompleteCheckpointException

from ..plan import targets
from ..plan.job import files_of
from ..runs import forecast
from .call import Wildcards, checked
from .call_state import CallState


class Rounds:
    """Runs and searches of a call, and the rounds that add some."""

    def __init__(self, state: CallState, checkpoints: Any) -> None:
        self._state, self._checkpoints = state, checkpoints
        plan, results = state.plan, state.results
        self._planned = [files_of(results, "run", run.name)[0] for run in state.listed]
        self._searches = [job.output for job in state.table.of_kind("search")]
        self._further: dict[int, list[str]] = {}
        # Without pending runs the plan is final. Decided once: the reserve shrinks.
        self._may_go_on: bool | None = None
        if not state.shows:
            state.check("a target that measures")
            checked(targets.check_runs, plan)
            checked(forecast.check_total, plan, forecast.total(plan, state.table.to_do))

    def before(self, wildcards: Wildcards) -> list[str]:
        """Return the files that a round needs before it decides.

        Round 0 needs the batch searches, round 1 the planned runs, later rounds the runs of the
        round before. With a time budget they need the checks of these runs, too: what these take is
        spent.
        """
        number, state = int(wildcards.number), self._state
        if number == 0:
            return state.inputs(self._searches)
        planned = self._planned if number == 1 else []
        asked = self._asked_by(number - 1) if number > 1 or self._searches else []
        checks = state.missing(state.table.checks) if state.plan.settings.budget else []
        return [*state.inputs([*planned, *asked]), *checks]

    def page(self, wildcards: Wildcards, framebench: list[str]) -> str:
        """Return the command that makes tables and report of the runs so far, before a round.

        Only a call with a time budget makes a page that early; ":" does nothing.
        """
        state = self._state
        if not state.plan.settings.budget or wildcards.number == "0":
            return ":"
        arguments = [*framebench, "report", "--records", f"{state.results}/runs"]
        return shlex.join([*arguments, "--results", state.results, "--before-round"])

    @property
    def records(self) -> list[str]:
        """All records that the call makes.

        These are the planned runs and searches, then the runs with the largest batches. Further
        rounds follow while a case of ``repeats: auto`` has too wide an interval, one of a
        performance gate is undecided, or a run was disturbed that is to be repeated.
        """
        wanted = [*self._planned, *self._searches]
        try:
            wanted += self._asked_by(0) if self._searches else []
            if self._may_go_on is None:
                plan = self._state.plan
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
        return self._state.inputs(wanted)

    def _asked_by(self, number: int) -> list[str]:
        """Return the records that a round adds, decided once when its checkpoint is done.

        Round 0 adds runs with the largest batches, later rounds add repeats by the intervals.
        """
        self._checkpoints.round.get(number=number)
        if number not in self._further:
            state = self._state
            decide = state.add_further_runs if number else state.add_runs_with_largest_batch
            self._further[number] = decide()
        return self._further[number]
