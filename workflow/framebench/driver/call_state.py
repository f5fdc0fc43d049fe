"""State of a call: its plan, which grows from round to round, the table of its jobs, and the lock
of its results."""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from snakemake.exceptions import IncompleteCheckpointException
from snakemake.io import local as with_no_prefix

from ..config.settings import Settings
from ..config.validation import ConfigError
from ..files import whole_files
from ..machine import local
from ..machine.local import Machine
from ..plan import planning, targets
from ..plan.job import MARKERS, Job, files_of, name_of
from ..plan.plan import note_expected
from ..records import record_sets
from ..records.run import RecordsError
from ..runs import slurm
from ..runs.job_table import JobTable
from .call import SnakemakeCall, Wildcards, checked, refuse, warn

if TYPE_CHECKING:
    from . import Driver


class CallState:
    """Plan of this call and the table of its jobs, which grow from round to round."""

    def __init__(self, driver: Driver, measures: bool) -> None:
        """Read the records and make the plan, after locking the results if the call ``measures``.
        Ends the call if no plan can be made."""
        self._catalog, self._checkpoints = driver.catalog, driver.checkpoints
        self._call = call = driver.call
        self._lock = _locked(driver.settings) if measures and call.measures else None
        #: True if the call shows the jobs of existing records too.
        self.shows = call.shows_files
        again = call.is_main_process and call.forces_runs
        settings = driver.settings.model_copy(update={"measures_again": again})
        self.results = str(settings.results)
        try:
            cached = None if call.is_cluster_job else record_sets.load_results(settings.results)
            self._machine = _machine(settings, call)
            self.plan = planning.make_plan(settings, driver.catalog, self._machine, cached)
        except (ConfigError, RecordsError) as error:
            refuse(error)
        if call.is_cluster_job:  # the job may belong to any round
            self.plan = replace(self.plan, runs=[*self.plan.runs, *self.plan.reserve])
        if self.is_locked:
            for pattern in MARKERS:
                for marker in (settings.results / "logs").glob(pattern):
                    marker.unlink()
        self.table = JobTable(self.plan, driver.catalog)
        self._before = {run.origin for run in cached.runs} if cached else set()
        forced = call.forced if call.is_main_process else ()
        self._forced = {Path(name).absolute() for name in forced}
        #: Function that is called with the runs, and all jobs, that a round adds.
        self.on_growth: Callable[[list[Job], list[Job]], None] = lambda runs, jobs: None
        started = time.monotonic()
        #: Returns the seconds of the time budget that have passed.
        self.clock: Callable[[], float] = lambda: time.monotonic() - started
        # Runs and searches of the first round; a call that shows files includes runs with records.
        self._first = self.plan.runs if self.shows else self.plan.pending
        self._searches = [job.output for job in self.table.jobs_of_kind("search")]
        self._added: dict[int, list[Job]] = {}
        #: Whether rounds follow; None until the largest batches are found.
        self._may_go_on: bool | None = None
        self._is_checked = False

    @property
    def is_locked(self) -> bool:
        """Return whether this call holds the lock of the results."""
        return self._lock is not None

    @property
    def further(self) -> list[Job]:
        """Jobs that later rounds may add; none with a time budget, which counts as a whole."""
        return self.table.rows(() if self.plan.settings.budget else self.plan.reserve)

    def check(self) -> None:
        """End the call if it cannot measure as requested."""
        plan = self.plan
        checked(targets.check_measurement, plan)
        checked(targets.check_arithmetic, plan, os.environ)
        checked(targets.check_data, plan, self._catalog)
        checked(targets.check_own_model, plan)

    def _check_once(self) -> None:
        """End a call that cannot measure as requested or has no case to run; check once."""
        if not (self.shows or self._is_checked):
            self._is_checked = True
            self.check()
            checked(targets.check_runs, self.plan)

    def job(self, wildcards: Wildcards) -> Job:
        """Return the job of a rule's wildcards. Ends the call for a file that none of its jobs
        makes, and for a forced record, which Snakemake would remove."""
        name = name_of(dict(wildcards.items()))
        job = self.table.find(name)
        if job and not self._forced:
            return job
        kind, _, path = name.partition("/")
        output = Path(files_of(self.results, kind, path)[0])
        is_record = output.suffix == ".json" and output.exists()
        if is_record and output.absolute() in self._forced:
            refuse(
                f"{output}: found among what is forced, but it is measured, and no record is ever "
                "removed; allowed: --forcerun benchmark, with --config cases=.. for some cases: "
                "the latest record counts, earlier ones stay"
            )
        if job is None:
            refuse(
                f"{output}: found among the targets; allowed: records of suite "
                f"{self.plan.settings.suite.name}, which `snakemake --summary` lists"
            )
        return job

    def inputs(self, paths: Iterable[str]) -> list[str]:
        """Return files for a rule, without adding a module's prefix, which they already have."""
        return [*map(with_no_prefix, paths)] if self._call.is_module else [*paths]

    def missing(self, jobs: Iterable[Job]) -> list[str]:
        """Return the files that a rule requires for these jobs. Files of finished jobs are included
        only if the call shows them."""
        asked = (job for job in jobs if self.shows or not job.status)
        return self.inputs(job.output for job in self.table.made_by(asked))

    @property
    def records(self) -> list[str]:
        """All records that the call makes.

        These are the planned runs and searches, then the runs with the largest batches. Further
        rounds follow while a case of a performance gate is undecided, or a time budget lasts.
        """
        self._check_once()
        asked = [*(run.output for run in self._first), *self._searches]
        try:
            asked += [run.output for run in self._added_by(0)] if self._searches else []
            if self._may_go_on is None:
                plan = self.plan
                self._may_go_on = bool((plan.pending or self._searches) and plan.reserve)
            for number in itertools.count(1) if self._may_go_on else ():
                added = self._added_by(number)
                if not added:
                    break
                asked += [run.output for run in added]
        except IncompleteCheckpointException as waiting:
            # Request the known file itself, which need not wait for the checkpoint: flagged as a
            # checkpoint's target, it would hide other changes from Snakemake.
            asked.append(str(waiting.targetfile))
        return self.inputs(asked)

    def before_round(self, number: int) -> list[str]:
        """Return the files that a round needs before it decides.

        Round 0 needs the batch searches, round 1 the planned runs, later rounds the runs of the
        round before. With a time budget they need the checks of these runs, too, whose time counts
        as spent.
        """
        self._check_once()
        if number == 0:
            return self.inputs(self._searches)
        jobs = [*self._first] if number == 1 else []
        jobs += self._added_by(number - 1) if number > 1 or self._searches else []
        failing = self.plan.failing
        awaited = self.inputs(run.output for run in jobs if run.software not in failing)
        checks = self.table.checks if self.plan.settings.budget else []
        return [*awaited, *self.missing(job for job in checks if job.software not in failing)]

    def page_before_round(self, number: int, framebench: list[str]) -> str:
        """Return the command that makes tables and report of the runs so far, before a round.

        Only a call with a time budget makes a page that early; ":" does nothing.
        """
        if not self.plan.settings.budget or number == 0:
            return ":"
        arguments = [*framebench, "report", "--records", f"{self.results}/runs"]
        return shlex.join([*arguments, "--results", self.results, "--before-round"])

    def _added_by(self, number: int) -> list[Job]:
        """Return the runs that a round adds, decided once when its checkpoint is done: by the
        largest batches found, and by the intervals of the runs so far."""
        self._checkpoints.round.get(number=number)
        if number not in self._added:
            known = {run.path for run in self.plan.runs}
            settings = self.plan.settings
            cached = record_sets.load_results(settings.results)
            self.plan = planning.make_plan(
                settings, self._catalog, self._machine, cached, self.plan, self._spent(cached)
            )
            if self.is_locked and number == 0:
                note_expected(self.plan)
            checks = self.table.grow(self.plan)
            runs = self.table.rows(run for run in self.plan.pending if run.path not in known)
            self.on_growth(runs, [*runs, *checks])
            self._added[number] = runs
        return self._added[number]

    def _spent(self, cached: record_sets.RecordSet | None) -> float:
        """Return the seconds of the time budget that the call has spent: node time of its runs on a
        cluster, else wall time without building environments."""
        if not self.plan.settings.cluster:
            return self.clock()
        found = cached.runs if cached else ()
        made = (run for run in found if run.origin not in self._before)
        return sum((run.wall_seconds or 0.0) * run.case.nodes for run in made)


def _locked(settings: Settings) -> TextIO:
    """Return the lock of a results folder, into which one call measures at a time.

    It is taken before records are read, because Snakemake would replace records that another call
    writes after that.
    """
    another = "give another folder: --config results=DIR"
    measuring = "another Framebench is measuring into this folder"
    try:
        held = whole_files.lock(settings.results / ".lock", another, measuring)
        # Jobs of a killed call in SLURM's queue end before the plan is made: their records
        # count, and nothing runs twice at a time.
        slurm.settle(settings.results, warn)
    except whole_files.LockError as error:
        refuse(error)
    except slurm.SlurmError as error:
        refuse(
            f"{settings.results / slurm.FILE}: found jobs of an earlier call, which may still "
            f"measure into this folder, and SLURM does not answer here: {error}; allowed: a "
            "call where squeue answers, or another folder: --config results=DIR. Remove the "
            "file when these jobs are over"
        )
    return held


def _machine(settings: Settings, call: SnakemakeCall) -> Machine:
    """Return the machine of the runs: a node of the cluster, or this machine.

    Raises ConfigError if nodes are to be measured one by one and SLURM does not list them.
    """
    cluster = settings.cluster
    if cluster is None:
        return local.detect(call.cores)
    if settings.each_node is None:
        return cluster.machine
    known = slurm.nodes(cluster)
    if call.is_cluster_job:  # nodes that fail later stay in the plan
        known = dict.fromkeys(known, "")
    return replace(cluster.machine, named=known)
