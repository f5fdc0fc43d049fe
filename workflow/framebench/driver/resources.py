"""Resources of jobs on this machine or a cluster, and shared allocations."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from ..config import cluster
from ..runs import allocations
from .call import warn
from .internals import Snakemake, Wildcards, for_rules
from .work import Work


class Resources:
    """Cores and other resources of jobs.

    ``all_cores``: cores of a job that runs alone; ``threads``: cores of any job; ``allocation``:
    name of the allocation that a run shares. These are functions only if they differ between jobs,
    because Snakemake calls them for each. ``asked``: resources of jobs by name: those requested of
    the cluster, or the default folder of temporary files.
    """

    def __init__(self, work: Work, snakemake: Snakemake) -> None:
        self._work, self._snakemake = work, snakemake
        described = work.plan.settings.cluster
        self.all_cores = described.cores_per_node if described else snakemake.cores
        self._cuda = work.plan.capacity.accelerator == "cuda"
        self.asked: dict[str, Callable[[Wildcards], Any] | str] = {}
        self._allocations: dict[str, str] = {}
        self.threads = self._threads if work.plan.settings.side_by_side else self.all_cores
        if described:
            # Runs that share an allocation follow each other.
            snakemake.limit_cores(described.cores_per_node)
            each = bool(work.plan.settings.each_node)
            asked = described.asked(self._cuda, each)
            self.asked = {name: _Asked(self, name).value for name in asked}
        elif not snakemake.default_resources:
            # Snakemake's own value, which it would evaluate for each job.
            self.asked = {"tmpdir": tempfile.gettempdir()}
        if described and described.runs_per_allocation > 1:
            self._allocations = allocations.allocations(
                work.plan, described.runs_per_allocation, described.whole_rounds
            )
            snakemake.join_groups(self._allocations.values(), "allocation")
        self.allocation = self._allocation if self._allocations else None

    @for_rules
    def _threads(self, wildcards: Wildcards) -> int:
        """Return the cores of a job: all, or a GPU's share of them for a job side by side with
        others, of which as many run at a time as there are GPUs."""
        job, plan = self._work.job(wildcards), self._work.plan
        if job is None or job.request is None or job.kind not in ("run", "verification", "checks"):
            return self.all_cores
        if not plan.is_beside(job.request.devices * job.request.nodes):
            return self.all_cores
        return -(-self._snakemake.cores // plan.capacity.devices_per_node)

    @for_rules
    def _allocation(self, wildcards: Wildcards) -> str | None:
        job = self._work.job(wildcards)
        return self._allocations.get(job.path) if job and job.kind == "run" else None

    def value(self, wildcards: Wildcards, name: str) -> Any:
        """Return the value of a cluster resource for a measuring job."""
        cluster = self._work.plan.settings.cluster
        assert cluster is not None, "only a cluster is asked for something"
        job = self._work.job(wildcards)
        assert job is not None, "only known jobs are submitted"
        assert job.request is not None, "only known jobs are submitted"
        nodes, devices, minutes, node = job.request
        extra = self._snakemake.default_resource(name, wildcards) if name == "slurm_extra" else ""
        return cluster.resources(nodes, devices, minutes, self._cuda, node, extra)[name]

    def warn_of_those_without_effect(self) -> None:
        for name in cluster.without_effect(self._snakemake.default_resources, [*self.asked]):
            warn(
                f"--default-resources: {name} has no effect on runs, which ask for what the plan "
                "and profiles/slurm/cluster.yaml say"
            )


class _Asked:
    """Function of one cluster resource."""

    def __init__(self, resources: Resources, name: str) -> None:
        self._resources, self._name = resources, name

    @for_rules
    def value(self, wildcards: Wildcards) -> Any:
        return self._resources.value(wildcards, self._name)
