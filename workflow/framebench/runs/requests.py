"""Resource requests of a plan's jobs to a cluster: nodes, tasks, cores, GPUs, memory and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from core.text import duration

from ..config.validation import ConfigError
from ..plan import groups
from ..plan.job import JobRequest
from ..plan.planning import Plan
from . import jobs
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

_HEADER = ["jobs", "nodes", "tasks", "cpus/task", "gpus/node", "mem/node", "time", "node", "for"]
#: What is measured, by kind of job.
_PURPOSES = {
    "run": "runs",
    "search": "searches",
    "peak_flops": "peak_flops",
    "verification": "verifications",
    "reference": "references",
}


def of_plan(
    plan: Plan,
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    verifications_of: Mapping[str, Verification],
) -> list[tuple[str, JobRequest]]:
    """Return purpose and request of each pending job; [] without a cluster."""
    if plan.settings.cluster is None:
        return []
    every = jobs.of_all(plan, peak_flops_of, verifications_of)
    every += [jobs.of_run(plan, run) for run in plan.reserve if plan.settings.budget is None]
    return [(_PURPOSES[job.kind], job.request) for job in every if job.request]


def lines(plan: Plan, requests: Iterable[tuple[str, JobRequest]]) -> list[str]:
    """Return a table with a row for each distinct request, and the total node hours."""
    cluster = plan.settings.cluster
    counted = Counter(requests)
    if cluster is None or not counted:
        return []
    cuda = plan.capacity.accelerator == "cuda"
    rows = [
        [
            str(count),
            str(job_request.nodes),
            str(job_request.nodes),
            str(cluster.cores_per_node),
            str(job_request.devices) if cuda else "0",
            f"{cluster.memory_mib} MiB",
            duration(60 * job_request.minutes),
            job_request.node,
            what,
        ]
        for (what, job_request), count in sorted(counted.items(), key=lambda each: each[0][1])
    ]
    hours = _further_hours(plan) + node_hours(job_request for _, job_request in counted.elements())
    most = cluster.most_node_hours
    ceiling = f" (most_node_hours: {most:g})" if most else ""
    return [
        "",
        "Requested of the cluster",
        *groups.table([_HEADER, *rows]),
        f"  at most {hours:.2f} node hours in all{ceiling}",
    ]


def node_hours(requests: Iterable[JobRequest]) -> float:
    """Return the node hours of all jobs, if each uses all of its time."""
    return sum(request.node_hours for request in requests)


def _further_hours(plan: Plan) -> float:
    """Return the node hours of rounds that a time budget decides later: at most the budget."""
    return (plan.settings.budget or 0.0) / 3600


def check(plan: Plan, requests: Iterable[JobRequest]) -> None:
    """Raise :class:`ConfigError` if jobs may use more node hours than ``most_node_hours``."""
    cluster = plan.settings.cluster
    most = cluster.most_node_hours if cluster else None
    if most is None:
        return
    hours = _further_hours(plan) + node_hours(requests)
    if hours > most:
        raise ConfigError(
            f"config: cluster.most_node_hours: found jobs that may take {hours:.2f} node hours by "
            f"the time that they are asked for; allowed: at most {most:g}. Narrow the suite, or "
            "lower time_limit: snakemake plan has the requests"
        )
