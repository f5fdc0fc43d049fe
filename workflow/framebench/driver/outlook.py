"""What this call waits for, as the view shows it and the forecast counts it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from ..cases.matrix import Case
from ..plan import estimates, labels
from ..plan.forecast import Task, time_left
from ..plan.planning import PlannedRun
from ..records.parity import FULL
from ..runs import certify, probes, total
from ..terminal import told
from ..terminal.view import Finished, View
from ..terminal.waiting import Awaited, name_of
from .call import warn
from .internals import Job, Snakemake
from .work import Work, kind

#: Rough seconds of a reference, most of it for the products in float64, and of tables and report.
REFERENCE_SECONDS, TABLES_SECONDS = 5.0, 10.0
#: A probe, and a certificate of a small model, as part of the short runs of the same framework.
OF_SHORT = 0.5


class Outlook:
    """Makes the view of a call. ``tables``: a file that the rule of the tables makes."""

    def __init__(self, work: Work, snakemake: Snakemake, tables: str) -> None:
        self._work, self._snakemake, self._tables = work, snakemake, tables
        self._view: View | None = None
        work.when_grown(self._grow)

    def show(self, jobs: Iterable[Job]) -> None:
        """Send the view of what is to be done."""
        plan = self._work.plan
        at_once = total.at_once(plan)
        awaited = [one for job in jobs if (one := self._awaited(job))]
        note = functools.partial(_note, told.Told(plan.settings.results, at_once))
        may_grow = bool(plan.reserve or self._work.searches)
        self._view = View(awaited, at_once, may_grow, self._snakemake.runs_here, note)
        text = f"To do: {self._view.counts()}, {time_left(self._view.left)}"
        self._snakemake.send_view(self._view, text)

    def end(self) -> None:
        """All is over: what follows is not the view's."""
        if self._view:
            self._view.end(self._snakemake.send)

    def _grow(self, runs: Iterable[PlannedRun]) -> None:
        if self._view:
            self._view.add(map(self._awaited_run, runs))

    def _awaited(self, job: Job) -> Awaited | None:
        """None of what takes no time, and of others' jobs."""
        what = kind(job.wildcards)
        if what == "run":
            return self._awaited_run(self._work.run(job.wildcards))
        wildcards = {name: getattr(job.wildcards, name) for name in job.wildcards.keys()}  # noqa: SIM118
        name = name_of(wildcards, job.rule.name)
        record = Path(str(job.output[0])) if what else None
        levels: tuple[str, ...]
        is_start = what == "probe"
        log = Path(str(job.log[0])) if job.log else None
        if what == "search":
            search = self._work.search(job.wildcards)
            case, seconds = search.case, self._work.plan.seconds_of(search)
            levels = (what, case.framework, f"{case.model}/{case.mode}", search.name)
            label = f"largest batch of {self._labels[case]}"
        elif what == "comparison":
            _, one = self._work.comparison(job.wildcards)
            is_start = one.scale != FULL
            seconds = certify.SECONDS if is_start else certify.FULL_SECONDS
            levels, label = (what, one.framework, one.reference, name), f"certificate of {one}"
        elif what == "probe":
            _, probe = self._work.probe(job.wildcards)
            seconds, label = probes.SECONDS, f"peak of {probe}"
            levels = (what, probe.framework, name)
        elif wildcards.keys() == {"name", "digest"}:
            what, seconds = "environment", estimates.ENVIRONMENT_SECONDS
            levels, label = (what, name), f"environment {wildcards['name']}"
        elif wildcards.keys() == {"reference", "digest"}:
            what, seconds = "reference", REFERENCE_SECONDS
            levels, label = (what, name), f"reference of {wildcards['reference']}"
        elif self._tables in map(str, job.output):
            what, seconds, label = "tables", TABLES_SECONDS, "tables and report"
            levels = (what,)
        else:
            return None
        task = Task(name, levels, seconds, of_short=OF_SHORT if is_start else 0.0)
        return Awaited(task, what, label, record, log)

    def _awaited_run(self, run: PlannedRun) -> Awaited:
        case, results = run.case, Path(self._work.results)
        names = ("framework", "model", "case", "run")
        name = name_of(dict(zip(names, run.name.split("/"), strict=True)), "")
        folder = run.name.rpartition("/")[0]
        levels = ("run", case.framework, f"{case.model}/{case.mode}", folder)
        label = f"{self._labels.get(case, str(case))} r{run.repeat}"
        record, log = results / "runs" / f"{run.name}.json", results / "logs" / f"{run.name}.log"
        task = Task(name, levels, run.seconds, case in self._measured)
        return Awaited(task, "run", label, record, log)

    @functools.cached_property
    def _measured(self) -> frozenset[Case]:
        """Those whose runs are expected to take what their records took."""
        return self._work.plan.measured

    @functools.cached_property
    def _labels(self) -> dict[Case, str]:
        return labels.of(self._work.plan.cases)


def _note(told_to: told.Told, one: Finished) -> None:
    try:
        told_to.add(one)
    except OSError as error:
        warn(f"{error.filename}: {error.strerror}")
