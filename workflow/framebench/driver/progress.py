"""Pending tasks of a call, for the progress view and the forecast."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from core.case import Case

from ..plan import labels
from ..plan.forecast import time_left
from ..plan.planning import PlannedRun
from ..plan.tasks import name_of
from ..runs import expected, total
from ..terminal.view import ProgressView
from ..terminal.waiting import Awaited
from .internals import Snakemake, SnakemakeJob
from .work import Work, kind


class Progress:
    """Source of the progress view of a call. ``tables``: an output of the rule that makes
    tables."""

    def __init__(self, work: Work, snakemake: Snakemake, tables: str) -> None:
        self._work, self._snakemake, self._tables = work, snakemake, tables
        self._view: ProgressView | None = None
        work.when_grown(self._grow)

    def show(self, jobs: Iterable[SnakemakeJob]) -> None:
        """Send the view of pending tasks."""
        plan = self._work.plan
        at_once = total.at_once(plan)
        awaited = [one for job in jobs if (one := self._awaited(job))]
        may_grow = bool(plan.reserve or self._work.searches)
        self._view = ProgressView(awaited, at_once, may_grow, self._snakemake.runs_here)
        text = f"To do: {self._view.counts()}, {time_left(self._view.left)}"
        self._snakemake.send_view(self._view, text)

    def stop(self) -> None:
        """Tell the view that running tasks end without a result."""
        if self._view:
            self._view.stop()

    def label(self, job: SnakemakeJob) -> str:
        """Return the label of a job that measures."""
        awaited = self._awaited(job)
        return awaited.label if awaited else str(job)

    def end(self) -> None:
        """End the view before the call's closing output."""
        if self._view:
            self._view.end(self._snakemake.send)

    def _grow(self, runs: Iterable[PlannedRun]) -> None:
        if self._view:
            self._view.add(map(self._awaited_run, runs))

    def _awaited(self, job: SnakemakeJob) -> Awaited | None:
        """Return the awaited task of a job; None for a quick job, or another workflow's."""
        what = kind(job.wildcards)
        if what == "run":
            return self._awaited_run(self._work.run(job.wildcards))
        wildcards = {name: getattr(job.wildcards, name) for name in job.wildcards.keys()}  # noqa: SIM118
        plan = self._work.plan
        if what == "search":
            search = self._work.search(job.wildcards)
            task = expected.of_search(plan, search)
            label = f"largest batch of {self._labels[search.case]}"
        elif what == "comparison":
            name, comparison = self._work.comparison(job.wildcards)
            task, label = (
                expected.of_comparison(plan, name, comparison),
                f"verification of {comparison}",
            )
        elif what == "probe":
            name, probe = self._work.probe(job.wildcards)
            task, label = expected.of_probe(plan, name, probe), f"peak of {probe}"
        elif wildcards.keys() == {"name", "digest"}:
            label = f"environment {wildcards['name']}"
            task = expected.of_environment(wildcards["name"])
        elif wildcards.keys() == {"reference", "digest"}:
            label = f"reference of {wildcards['reference']}"
            task = expected.of_reference(plan, wildcards["reference"])
        elif self._tables in map(str, job.output):
            task, label = expected.of_tables(), "tables and report"
        else:
            return None
        record = Path(str(job.output[0])) if what else None
        log = Path(str(job.log[0])) if job.log else None
        return Awaited(task._replace(name=name_of(wildcards, job.rule.name)), label, record, log)

    def _awaited_run(self, run: PlannedRun) -> Awaited:
        case, results = run.case, Path(self._work.results)
        label = f"{self._labels.get(case, str(case))} r{run.repeat}"
        record, log = results / "runs" / f"{run.name}.json", results / "logs" / f"{run.name}.log"
        task = expected.of_run(run, case in self._measured)
        return Awaited(task, label, record, log)

    @functools.cached_property
    def _measured(self) -> frozenset[Case]:
        """Cases whose expected seconds come from their records."""
        return self._work.plan.measured

    @functools.cached_property
    def _labels(self) -> dict[Case, str]:
        return labels.of(self._work.plan.cases)
