"""Resource requests of a plan's jobs to a cluster: nodes, tasks, cores, GPUs, memory and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from core.text import duration

from ..config.validation import ConfigError
from ..plan import groups, limits
from ..plan.planning import Plan, PlannedRun
from . import peak_flops, verify
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

_HEADER = ["jobs", "nodes", "tasks", "cpus/task", "gpus/node", "mem/node", "time", "node", "for"]


class JobRequest(NamedTuple):
    """Nodes, devices per node, minutes and required node of a job; "" for any node."""

    nodes: int
    devices: int
    minutes: int
    node: str = ""

    @property
    def node_hours(self) -> float:
        """Largest number of node hours that the job uses."""
        return self.nodes * self.minutes / 60


def of_run(plan: Plan, run: PlannedRun) -> JobRequest:
    case = run.case
    return JobRequest(case.nodes, case.devices_per_node, plan.minutes[case], case.node)


def usual(plan: Plan, nodes: int = 1, devices: int = 1, node: str = "") -> JobRequest:
    """Return the request of a job with the configured time limit of a run."""
    return JobRequest(nodes, devices, limits.minutes(plan.settings), node)


def of_plan(
    plan: Plan, probes_of: Mapping[str, PeakFlopsBenchmark], comparisons: Mapping[str, Verification]
) -> list[tuple[str, JobRequest]]:
    """Return purpose and request of each pending job; [] without a cluster."""
    if plan.settings.cluster is None:
        return []
    results = plan.settings.results
    to_make = verify.missing(results, comparisons)
    cases = [search.case for search in plan.unsearched]
    return [
        *(("runs", of_run(plan, run)) for run in [*plan.pending, *plan.reserve]),
        *(("searches", usual(plan, c.nodes, c.devices_per_node, c.node)) for c in cases),
        *(
            ("probes", usual(plan, 1, probes_of[name].devices))
            for name in peak_flops.missing(results, probes_of)
        ),
        *(("comparisons", usual(plan, 1, one.case.devices)) for one in to_make.values()),
        *(("references", usual(plan)) for _ in verify.references(results, to_make.values())),
    ]


def lines(plan: Plan, requests: Iterable[tuple[str, JobRequest]]) -> list[str]:
    """Return a table with a row for each distinct request, and the total node hours."""
    cluster = plan.settings.cluster
    counted = Counter(requests)
    if cluster is None or not counted:
        return []
    cuda = plan.place.accelerator == "cuda"
    rows = [
        [
            str(count),
            str(one.nodes),
            str(one.nodes),
            str(cluster.cores_per_node),
            str(one.devices) if cuda else "0",
            f"{cluster.memory_mib} MiB",
            duration(60 * one.minutes),
            one.node,
            what,
        ]
        for (what, one), count in sorted(counted.items(), key=lambda each: each[0][1])
    ]
    hours = node_hours(one for _, one in counted.elements())
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
    return sum(one.node_hours for one in requests)


def check(plan: Plan, requests: Iterable[JobRequest]) -> None:
    """Raise :class:`ConfigError` if jobs may use more node hours than ``most_node_hours``."""
    cluster = plan.settings.cluster
    most = cluster.most_node_hours if cluster else None
    if most is None:
        return
    hours = node_hours(requests)
    if hours > most:
        raise ConfigError(
            f"config: cluster.most_node_hours: found jobs that may take {hours:.2f} node hours by "
            f"the time that they are asked for; allowed: at most {most:g}. Narrow the suite, or "
            "lower time_limit or cluster.least_time: snakemake plan has the requests"
        )
