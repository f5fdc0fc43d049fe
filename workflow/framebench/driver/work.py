"""What there is to do: the plan, and the way from a job's wildcards to what it is for."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable
from dataclasses import replace

from ..config.catalog import Catalog
from ..config.settings import Settings
from ..config.validation import ConfigError
from ..environments import cleaning, software
from ..files import locks
from ..machine import local
from ..machine.local import Machine
from ..plan import limits, noting, planning
from ..plan.batch_searches import BatchSearch
from ..plan.forecast import Left
from ..plan.planning import Plan, PlannedRun
from ..records import record_sets
from ..records.record_sets import RecordsError, RecordSet
from ..runs import peak_flops, requests, slurm, slurm_nodes, total, verify
from ..runs.peak_flops import PeakFlopsBenchmark
from ..runs.requests import JobRequest
from ..runs.verify import Verification
from .call import Invocation, refuse, warn
from .internals import Snakemake, Wildcards

#: What a job is for that must have the machine, or its part of it, for itself: the wildcard of its
#: name, by which it is known.
_KINDS = ("run", "search", "comparison", "probe")


class Work:
    """The plan of this call with the names that its jobs have. It grows when largest batches are
    known, and everything that asks it then sees that."""

    def __init__(
        self, settings: Settings, catalog: Catalog, call: Invocation, snakemake: Snakemake
    ) -> None:
        """Ends the call where there can be no plan."""
        self.catalog = catalog
        self._lock = _Lock(settings, call)
        self.cached: RecordSet | None = None
        minutes: dict[str, int] | None = None
        try:
            if snakemake.is_cluster_job:
                minutes = _minutes(settings)
            elif call.plans:
                writes = self._lock.held is not None
                self.cached = record_sets.load_results(settings.results, writes)
            machine = self._machine = _machine(settings, call, snakemake)
            self.plan = planning.make_plan(settings, catalog, machine, self.cached, minutes)
            # On a cluster they may be on its nodes alone.
            if call.looks and not settings.cluster:
                needed = self.plan.software if call.proves else self.plan.needed
                software.check_interpreters(needed, settings)
        except (ConfigError, RecordsError) as error:
            refuse(error)
        if self._lock.missing and (self.plan.pending or self.plan.unsearched):
            refuse(self._lock.missing)
        folders = [one.folder for one in self.plan.software.values() if one.folder]
        is_shared = call.measures and not settings.node_local
        self._environments = cleaning.hold(folders if is_shared else [])
        self.results = str(settings.results)
        self._runs = {run.name: run for run in [*self.plan.pending, *self.plan.reserve]}
        self.searches = {search.name: search for search in self.plan.unsearched}
        #: Of the models themselves, and of small ones where those were not made.
        self.comparisons = verify.names(self.plan, catalog, verify.comparisons(self.plan, catalog))
        self.small_comparisons = verify.small(self.plan, catalog, self.comparisons)
        self._comparisons = {**self.comparisons, **self.small_comparisons}
        self.probes = peak_flops.names(self.plan)
        self._grown: list[Callable[[list[PlannedRun]], None]] = []
        #: Of the records and of what is to be done, before anything is.
        self.state = self._state()

    @property
    def is_locked(self) -> bool:
        """Whether no other call measures into the results."""
        return self._lock.held is not None

    def run(self, wildcards: Wildcards) -> PlannedRun:
        name = f"{wildcards.framework}/{wildcards.model}/{wildcards.case}/{wildcards.run}"
        return self._runs[name]

    def search(self, wildcards: Wildcards) -> BatchSearch:
        return self.searches[f"{wildcards.framework}/{wildcards.model}/{wildcards.search}"]

    def comparison(self, wildcards: Wildcards) -> tuple[str, Verification]:
        """With its name."""
        name = f"{wildcards.framework}/{wildcards.reference}/{wildcards.comparison}"
        return name, self._comparisons[name]

    def probe(self, wildcards: Wildcards) -> tuple[str, PeakFlopsBenchmark]:
        """With its name."""
        name = f"{wildcards.framework}/{wildcards.probe}"
        return name, self.probes[name]

    def software(self, wildcards: Wildcards) -> str:
        """The name of what a job that measures runs in. A probe is of the usual software, all else
        perhaps of a variant's."""
        what = kind(wildcards)
        if what == "run":
            return planning.software(self.run(wildcards).case, self.plan.settings.suite)
        if what == "search":
            return planning.software(self.search(wildcards).case, self.plan.settings.suite)
        if what == "comparison":
            return self.comparison(wildcards)[1].software
        return wildcards.framework

    def request(self, wildcards: Wildcards) -> JobRequest:
        """Return what the job asks the cluster for."""
        what, plan = kind(wildcards), self.plan
        if what == "run":
            return requests.of_run(plan, self.run(wildcards))
        if what == "search":
            case = self.search(wildcards).case
            return requests.usual(plan, case.nodes, case.devices_per_node, case.node)
        if what == "comparison":
            return requests.usual(plan, devices=self.comparison(wildcards)[1].devices)
        if what == "probe":
            return requests.usual(plan, devices=self.probe(wildcards)[1].devices)
        return requests.usual(plan)

    @property
    def total(self) -> Left:
        """Seconds that all of it takes."""
        return total.left(self.plan, self.probes, self.small_comparisons)

    def advice(self) -> list[str]:
        """What takes so long, and what would take less."""
        machine = self._machine
        return total.advice(self.plan, self.total, self.catalog, machine, self.cached)

    def check_total(self) -> None:
        """Raise :class:`ConfigError` where that is more than a day and nobody has said yes."""
        total.check(self.plan, self.total, self.advice)

    def when_grown(self, call: Callable[[list[PlannedRun]], None]) -> None:
        """Have ``call`` told of runs that are to be done besides those of the plan."""
        self._grown.append(call)

    def grow(self, runs: list[PlannedRun]) -> None:
        """Tell of such runs."""
        for call in self._grown:
            call(runs)

    def add_runs_with_largest_batch(self) -> list[PlannedRun]:
        """Those of the cases whose batch was not known before; the plan has them from now on."""
        before = {run.name for run in [*self.plan.runs, *self.plan.reserve]}
        machine = self._machine
        self.plan = planning.with_found(self.plan, self.catalog, machine)
        runs = [run for run in self.plan.pending if run.name not in before]
        reserve = [run for run in self.plan.reserve if run.name not in before]
        self._runs.update((run.name, run) for run in [*runs, *reserve])
        if self.is_locked:
            noting.note(self.plan)
        if self.plan.settings.cluster:
            limits.write_minutes(self.plan.settings.results, self.plan.minutes_by_folder)
        return runs

    def renewed(self) -> Plan:
        """Return the plan as the next call would make it. Raises ConfigError or RecordsError."""
        return planning.renewed(self.plan, self.catalog, self._machine)

    def _state(self) -> str:
        runs = [(run.name, run.status) for run in [*self.plan.runs, *self.plan.reserve]]
        return hashlib.sha256(repr(runs + list(self.searches)).encode()).hexdigest()[:12]


def is_submitted(wildcards: Wildcards) -> bool:
    """Return whether a cluster is asked for something: by what measures, and by references."""
    return bool(kind(wildcards)) or "reference" in wildcards.keys()  # noqa: SIM118


def kind(wildcards: Wildcards) -> str:
    """One of _KINDS; "" for a job that measures nothing."""
    return next((name for name in _KINDS if name in wildcards.keys()), "")  # noqa: SIM118


#: What a job says of a folder that its node does not see, in the middle of the message.
UNSEEN = "the results of this call are not there on"


class _Lock:
    """Only one call measures into a results folder. It is taken before records are read: of those
    that another call wrote after that, Snakemake would make room for its own. ``missing``: why
    there is none, where nothing can be written at all and so nothing lost."""

    def __init__(self, settings: Settings, call: Invocation) -> None:
        self.held, self.missing = None, ""
        if not call.measures:
            return
        another = "give another folder: --config results=DIR"
        measuring = "another Framebench is measuring into this folder"
        try:
            self.held = locks.take(settings.results / ".lock", another, measuring)
            # What a killed call has left in SLURM's queue is over before the plan is made, wherever
            # this call measures: its records count, and nothing runs twice at the same time.
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


def _minutes(settings: Settings) -> dict[str, int]:
    """Return what the call that submitted this job asks for. Ends the job where its node does not
    see the folder of the results."""
    try:
        return limits.read_minutes(settings.results)
    except (OSError, ValueError) as error:
        refuse(
            f"{settings.results.absolute()}: {UNSEEN} node {socket.gethostname()} ({error}); "
            "allowed: a folder that login node and compute nodes share: --config results=DIR"
        )


def _machine(settings: Settings, call: Invocation, snakemake: Snakemake) -> Machine:
    """What runs are measured on: a node of the cluster, or this machine. Raises ConfigError where
    each node is to be measured and SLURM does not say which there are."""
    cluster = settings.cluster
    if cluster is None:
        return local.detect()
    if settings.each_node is None or not (call.plans or snakemake.is_cluster_job):
        return cluster.machine
    job = snakemake.is_cluster_job
    known = slurm_nodes.noted(settings.results) if job else slurm_nodes.nodes(cluster)
    return replace(cluster.machine, named=known)
