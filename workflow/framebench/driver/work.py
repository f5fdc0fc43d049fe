"""Work of a call: the plan, and the lookup from a job's wildcards to its part of the plan."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from core.case import Case
from snakemake.io import local as with_no_prefix

from ..config.catalog import Catalog
from ..config.settings import Settings
from ..config.validation import ConfigError
from ..environments import software, soundness, uv
from ..environments.software import Software
from ..files import locks
from ..machine import local
from ..machine.local import Machine
from ..plan import labels, noting, planning, targets
from ..plan.budget import NOTHING_SPENT, Spent
from ..plan.job import FOLDERS, Job, marker_of, name_of, record_of
from ..plan.planning import Plan, PlannedRun
from ..records import record_sets
from ..records.record_sets import RecordsError, RecordSet
from ..records.spending import Spending
from ..runs import commands, forecast, jobs, peak_flops, slurm, verify
from .call import SnakemakeCall, Wildcards, checked, refuse, warn


class Work:
    """Plan of this call, with the names of its jobs. It grows when largest batches become known."""

    def __init__(
        self, settings: Settings, catalog: Catalog, call: SnakemakeCall, measures: bool
    ) -> None:
        """Read the records and make the plan, after locking the results if the call ``measures``.
        Ends the call if there is no plan."""
        self.catalog, self._call = catalog, call
        self._lock = _Lock(settings, measures)
        #: True if the call shows the jobs of existing records too.
        self.shows = call.shows_files
        self.cached: RecordSet | None = None
        try:
            if call.is_cluster_job:
                _check_folder(settings)
            else:
                self.cached = record_sets.load_results(settings.results)
            machine = self._machine = _machine(settings, call)
            self.plan = planning.make_plan(settings, catalog, machine, self.cached)
            if call.is_cluster_job:  # which may be one of any round
                self.plan = self.plan.with_runs(self.plan.reserve)
        except (ConfigError, RecordsError) as error:
            refuse(error)
        if self._lock.missing and (self.plan.pending or self.plan.unsearched):
            refuse(self._lock.missing)
        if self.is_locked:
            self._discard_damaged_environments()
        self.results = str(settings.results)
        #: Names of checks that share a process, by the path of their job.
        self._together: dict[str, list[str]] = {}
        #: Marker of that job, by the name of the check.
        self._marked: dict[str, str] = {}
        self._runs = {run.name: run for run in [*self.plan.runs, *self.plan.reserve]}
        self.searches = {search.name: search for search in self.plan.unsearched}
        self._chosen_names: dict[str, str] = {}
        self._name_checks()
        #: Missing or damaged environments that are built once for all nodes.
        self.to_build = commands.to_build(self.plan)
        self._spending = Spending(settings.results) if settings.budget else None
        self._jobs: dict[str, Job] = {}
        forced = call.forced if call.is_main_process else ()
        self._forced = {Path(name).absolute() for name in forced}
        #: Called with the runs that each round adds.
        self.on_growth: Callable[[list[PlannedRun]], None] = lambda runs: None
        started = time.monotonic()
        #: Returns the seconds of the time budget that have passed.
        self.clock: Callable[[], float] = lambda: time.monotonic() - started
        #: Settled leads and all leads after the latest round, (0, 0) without a time budget.
        self.leads = (0, 0)

    def check(self, target: str) -> None:
        """End the call if ``target`` cannot measure as it is asked to."""
        plan = self.plan
        checked(targets.check_measurement, plan, target)
        checked(targets.check_arithmetic, plan, os.environ)
        checked(targets.check_data, plan, self.catalog)
        checked(targets.check_own_model, plan)
        self.check_interpreters(plan.needed)

    def check_interpreters(self, needed: Mapping[str, Software]) -> None:
        """End the call if an interpreter is missing that it needs. On a cluster, interpreters may
        exist on its nodes only."""
        if self._call.is_main_process and not self.shows and not self.plan.settings.cluster:
            checked(software.check_interpreters, needed, self.plan.settings)

    def _discard_damaged_environments(self) -> None:
        """Let the environments be built anew in which a run failed and a file is missing."""
        cached = self.cached.runs if self.cached else ()
        failed = {run.case.framework for run in cached if run.status == "failed"}
        for name, needed in self.plan.needed.items():
            if name.partition("@")[0] not in failed or not needed.folder or not needed.marker:
                continue
            if needed.marker.exists() and (damage := soundness.damaged_file(needed.folder)):
                warn(
                    f"{needed.folder} is damaged: {damage.file} is missing or changed. It is built "
                    "anew, and its failed runs are measured again."
                )
                if damage.file.exists():  # uv links files from its cache, which has the same one
                    uv.forget(damage.package)
                needed.marker.unlink()

    def _name_checks(self) -> None:
        """Name the verifications and peak-FLOPS benchmarks of the cases in the plan.

        ``verifications``: full-size verifications; ``small_verifications``: small ones for those
        without a record.
        """
        plan, catalog = self.plan, self.catalog
        chosen, full = self._chosen_names, verify.full_size(plan, catalog)
        self.verifications = verify.names(plan, catalog, full, chosen)
        self.small_verifications = verify.small(plan, catalog, self.verifications, chosen)
        self._verifications = {**self.verifications, **self.small_verifications}
        self.peak_flops = peak_flops.names(plan)
        new = jobs.group_checks(plan, self.small_verifications, self.peak_flops, self._marked)
        for path, checks in new.items():
            self._together[path] = checks
            marker = marker_of(self.results, path)
            self._marked.update(dict.fromkeys(checks, marker))
            if self.is_locked:  # its marker is of an earlier call
                Path(marker).unlink(missing_ok=True)

    def inputs(self, paths: list[str]) -> list[str]:
        """Return files for a rule. Snakemake would add a module's prefix, which they have."""
        return [*map(with_no_prefix, paths)] if self._call.is_module else paths

    def files_of(self, kind: str, paths: Iterable[str]) -> list[str]:
        """Return what a rule asks for to get missing records of checks, or all of them if the call
        shows those: the marker of checks that share a process, else the record."""
        files = {f"{kind}/{path}": record_of(self.results, kind, path) for path in paths}
        asked = {
            self._marked.get(name, file): None
            for name, file in files.items()
            if self.shows or not Path(file).exists()
        }
        return [*asked]

    @property
    def checks(self) -> list[str]:
        """Files of small verifications and peak-FLOPS benchmarks, see :meth:`files_of`."""
        small = self.files_of("verification", self.small_verifications)
        return list(dict.fromkeys([*small, *self.files_of("peak_flops", self.peak_flops)]))

    @property
    def is_locked(self) -> bool:
        """Return whether this call holds the lock of the results."""
        return self._lock.held is not None

    @cached_property
    def early(self) -> PlannedRun | None:
        """Run that need not wait for the environments of others, so that a first figure comes soon.

        Only a call with a time budget has one.
        """
        pending = self.plan.pending if self.plan.settings.budget else []
        return min(pending, key=lambda run: run.seconds, default=None)

    @property
    def listed(self) -> list[PlannedRun]:
        """Runs of the call, with those that have a record if it shows them."""
        return self.plan.runs if self.shows else self.plan.pending

    def is_measured(self, job: Job | None) -> bool:
        """Return whether the record of a job exists and is not to be made by this call."""
        if job is None or not job.record:
            return False
        if job.kind == "run":
            return bool(self._runs[job.path].status)
        return self.shows and Path(job.record).exists()

    def run(self, job: Job) -> PlannedRun:
        return self._runs[job.path]

    def job(self, wildcards: Wildcards) -> Job | None:
        """Return the job of a rule; None for a quick one, or another workflow's."""
        given = dict(wildcards.items())
        if not (name := name_of(given)):
            return None
        if name not in self._jobs:
            kind, _, path = name.partition("/")
            if kind in FOLDERS:
                self._check_record(kind, path)
            if kind == "checks" and path not in self._together:
                refuse(f"{path}: found among the targets; allowed: records of checks")
            self._jobs[name] = self._made(kind, path, given)
        return self._jobs[name]

    def _check_record(self, kind: str, path: str) -> None:
        """End the call if it forces an existing record, which Snakemake would remove, or asks for a
        record that none of its jobs makes."""
        named: dict[str, Mapping[str, object]] = {
            "run": self._runs,
            "search": self.searches,
            "verification": self._verifications,
            "peak_flops": self.peak_flops,
        }
        record = Path(record_of(self.results, kind, path))
        if self._forced and record.absolute() in self._forced and record.exists():
            refuse(
                f"{record}: found among what is forced, but it is measured, and no record is ever "
                "removed; allowed: --forcerun benchmark, with --config cases=.. for some cases: "
                "the latest record counts, earlier ones stay"
            )
        if path not in named[kind]:
            refuse(
                f"{record}: found among the targets; allowed: records of suite "
                f"{self.plan.settings.suite.name}, which `snakemake --summary` lists"
            )

    def job_of_run(self, run: PlannedRun) -> Job:
        return jobs.of_run(self.plan, run, self._label(run.case))

    def label_of(self, name: str) -> str:
        """Return the label of a run with its repeat, by its name; the name of an unknown one."""
        return self.job_of_run(self._runs[name]).title if name in self._runs else name

    def jobs_of_checks(self) -> list[Job]:
        """Return the jobs of all checks that are named so far."""
        apart = [
            name for name in self.small_verifications if f"verification/{name}" not in self._marked
        ]
        named = [
            *(("checks", path) for path in self._together),
            *(("verification", n) for n in apart),
        ]
        return [self._made(kind, path, {}) for kind, path in named]

    def _made(self, kind: str, path: str, wildcards: Mapping[str, str]) -> Job:
        plan = self.plan
        if kind == "run":
            return self.job_of_run(self._runs[path])
        if kind == "search":
            search = self.searches[path]
            return jobs.of_search(plan, search, self._label(search.case))
        if kind == "verification":
            verification = self._verifications[path]
            folder = jobs.reference_folder(plan, self.catalog, verification)
            return jobs.of_verification(plan, path, verification, folder)
        if kind == "checks":
            parts = (name.partition("/") for name in self._together[path])
            return jobs.checks_job(plan, path, [self._made(part, at, {}) for part, _, at in parts])
        if kind == "peak_flops":
            return jobs.of_peak_flops(plan, path, self.peak_flops[path])
        if kind == "reference":
            return jobs.of_reference(plan, wildcards["reference"], wildcards["digest"])
        return jobs.of_environment(wildcards["environment"], wildcards["digest"])

    def _label(self, case: Case) -> str:
        return self._labels.get(case) or str(case)

    @cached_property
    def _labels(self) -> dict[Case, str]:
        return labels.label_cases(self.plan.cases, self.plan.larger)

    @property
    def total(self) -> float:
        """Seconds until all pending work is done."""
        return forecast.left(self.plan, self.peak_flops, self.small_verifications)

    def check_total(self) -> None:
        """Raise :class:`ConfigError` if the call takes more than a day and ``yes`` is not set."""
        forecast.check(self.plan, self.total)

    def add_further_runs(self) -> list[PlannedRun]:
        """Move the runs of the next round from the reserve to the plan, and return them."""
        runs, self.leads = planning.further(self.plan, self._spent())
        self.plan = self.plan.with_runs(runs)
        self._runs.update((run.name, run) for run in runs)
        if self._spending:
            self._name_checks()
        return runs

    def _spent(self) -> Spent:
        """Return what the call has spent of its time budget: node time on a cluster, else wall time
        without that of environments."""
        if not (spending := self._spending):
            return NOTHING_SPENT
        in_records = spending.seconds()
        if self.plan.settings.cluster or not spending.newest:
            return Spent(in_records)
        seconds = self.clock()
        around = max(0.0, seconds - in_records) / max(1, spending.runs)
        return Spent(seconds, around, max(0.0, time.time() - spending.newest))

    def add_runs_with_largest_batch(self) -> list[PlannedRun]:
        """Add the runs of cases whose batch search has ended to the plan, and return them."""
        before = {run.name for run in [*self.plan.runs, *self.plan.reserve]}
        machine = self._machine
        self.plan = planning.with_found(self.plan, self.catalog, machine)
        runs = [run for run in self.plan.pending if run.name not in before]
        reserve = [run for run in self.plan.reserve if run.name not in before]
        self._runs.update((run.name, run) for run in [*runs, *reserve])
        vars(self).pop("_labels", None)  # made of the cases that were known
        if self.is_locked:
            noting.note(self.plan)
        return runs

    def renewed(self) -> Plan:
        """Return the plan as the next call would make it. Raises ConfigError or RecordsError."""
        return planning.renewed(self.plan, self.catalog, self._machine)


class _Lock:
    """Lock of a results folder, into which one call measures at a time.

    It is taken before records are read, because Snakemake would replace records that another call
    writes after that. ``missing``: why there is no lock if the folder is not writable, so that
    nothing can be lost.
    """

    def __init__(self, settings: Settings, measures: bool) -> None:
        self.held, self.missing = None, ""
        if not measures:
            return
        another = "give another folder: --config results=DIR"
        measuring = "another Framebench is measuring into this folder"
        try:
            self.held = locks.take(settings.results / ".lock", another, measuring)
            # Jobs of a killed call in SLURM's queue end before the plan is made: their records
            # count, and nothing runs twice at a time.
            slurm.settle(settings.results, warn)
        except locks.LockUnwritable as error:
            self.missing = str(error)
        except locks.LockError as error:
            refuse(error)
        except slurm.SlurmError as error:
            refuse(
                f"{settings.results / slurm.FILE}: found jobs of an earlier call, which may still "
                f"measure into this folder, and SLURM does not answer here: {error}; allowed: a "
                "call where squeue answers, or another folder: --config results=DIR. Remove the "
                "file when these jobs are over"
            )


def _check_folder(settings: Settings) -> None:
    """End the job if its node does not see the results folder."""
    if not (settings.results / ".lock").exists():
        refuse(
            f"{settings.results.absolute()}: the results of this call are not there on node "
            f"{socket.gethostname()} (no file .lock); allowed: a folder that login node and "
            "compute nodes share: --config results=DIR"
        )


def _machine(settings: Settings, call: SnakemakeCall) -> Machine:
    """Return the machine of the runs: a node of the cluster, or this machine.

    Raises ConfigError if nodes are to be measured one by one and SLURM does not list them.
    """
    cluster = settings.cluster
    if cluster is None:
        return local.detect(call.cores)
    if settings.each_node is None:
        return cluster.machine
    is_job = call.is_cluster_job
    known = slurm.noted_nodes(settings.results) if is_job else slurm.nodes(cluster)
    return replace(cluster.machine, named=known)
