"""Node hours that a plan's jobs may take of a cluster, and their ceiling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.text import counted

from ..config.validation import ConfigError
from ..plan.job import JobRequest
from ..plan.planning import Plan
from . import jobs
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification


def of_plan(
    plan: Plan,
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    verifications_of: Mapping[str, Verification],
) -> list[JobRequest]:
    """Return the request of each pending job; [] without a cluster."""
    if plan.settings.cluster is None:
        return []
    every = jobs.of_all(plan, peak_flops_of, verifications_of)
    every += [jobs.of_run(plan, run) for run in plan.reserve if plan.settings.budget is None]
    return [job.request for job in every if job.request]


def lines(plan: Plan, requests: Iterable[JobRequest]) -> list[str]:
    """Return a line with jobs and node hours; [] without a cluster."""
    cluster, asked = plan.settings.cluster, [*requests]
    if cluster is None or not asked:
        return []
    most = cluster.most_node_hours
    ceiling = f" (most_node_hours: {most:g})" if most else ""
    hours = f"at most {node_hours(plan, asked):.2f} node hours in all{ceiling}"
    return ["", f"Requested of the cluster: {counted(len(asked), 'job')}, {hours}"]


def node_hours(plan: Plan, requests: Iterable[JobRequest]) -> float:
    """Return the node hours of all jobs, if each uses all of its time, and those of rounds that a
    time budget decides later."""
    return (plan.settings.budget or 0.0) / 3600 + sum(
        request.nodes * request.minutes / 60 for request in requests
    )


def check(plan: Plan, requests: Iterable[JobRequest]) -> None:
    """Raise :class:`ConfigError` if jobs may use more node hours than ``most_node_hours``."""
    cluster = plan.settings.cluster
    most = cluster.most_node_hours if cluster else None
    if most is not None and (hours := node_hours(plan, requests)) > most:
        raise ConfigError(
            f"config: cluster.most_node_hours: found jobs that may take {hours:.2f} node hours by "
            f"the time that they are asked for; allowed: at most {most:g}. Narrow the suite, or "
            "lower time_limit: snakemake plan has the sum"
        )
