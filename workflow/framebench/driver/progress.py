"""Pending jobs of a call, for the progress view and the forecast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..plan import call_text
from ..plan.jobs import Job
from ..plan.planning import PlannedRun
from ..runs import jobs, total
from ..terminal.view import ProgressView
from .internals import Snakemake, SnakemakeJob
from .work import Work


class Progress:
    """Source of the progress view of a call. ``tables``: an output of the rule that makes
    tables."""

    def __init__(self, work: Work, snakemake: Snakemake, tables: str) -> None:
        self._work, self._snakemake, self._tables = work, snakemake, tables
        self._view: ProgressView | None = None
        work.when_grown(self._grow)

    def show(self, waiting: Iterable[SnakemakeJob]) -> None:
        """Send the view of pending jobs."""
        plan = self._work.plan
        pending = [one for job in waiting if (one := self._job(job))]
        # On a cluster the budget is node time, which no clock shows.
        budget = None if plan.settings.cluster else plan.settings.budget
        view = self._view = ProgressView(
            pending, self._work.results, lambda: self._snakemake.seconds, budget,
            total.at_once(plan), self._snakemake.runs_here,
        )  # fmt: skip
        lines = call_text.opening(plan, view.count("environment"), view.counts(), view.left)
        self._snakemake.send_view(view, "\n".join(lines))
        if budget and plan.pending:
            view.begin_round((), [f"next: {call_text.next_runs(plan, plan.pending)}"])

    def stop(self) -> None:
        """Tell the view that running jobs end without a result."""
        if self._view:
            self._view.stop()

    def label(self, job: SnakemakeJob) -> str:
        """Return the label of a job that measures."""
        known = self._job(job)
        return known.title if known else str(job)

    def end(self) -> None:
        """End the view before the call's closing output."""
        if self._view:
            self._view.end(self._snakemake.send)

    def _grow(self, runs: Sequence[PlannedRun]) -> None:
        if self._view:
            settled, leads = self._work.leads
            ahead = [f"leads settled: {settled} of {leads}"] * bool(leads)
            ahead.append(f"next: {call_text.next_runs(self._work.plan, runs)}")
            added = [*map(self._work.job_of_run, runs), *self._work.jobs_of_checks()]
            self._view.begin_round(added, ahead)

    def _job(self, job: SnakemakeJob) -> Job | None:
        """Return what Snakemake's job carries out; None for a quick job, or another workflow's."""
        if self._tables in map(str, job.output):
            log = str(job.log[0]) if job.log else ""
            return jobs.of_tables(job.rule.name)._replace(log=log)
        result = self._work.job(job.wildcards)
        if result and not result.record and job.log:
            return result._replace(log=str(job.log[0]))
        return result
