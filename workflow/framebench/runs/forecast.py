"""Expected time of the jobs of a call, and the node hours that they ask of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from core.text import counted, duration

from ..config.validation import ConfigError
from ..plan import estimates, planning
from ..plan.job import NOUNS, Job, count_of
from ..plan.plan import Plan

#: Seconds of a day.
DAY = 86400.0


def at_once(plan: Plan) -> float:
    """Return the most run seconds per wall second, from concurrent runs here or on a fully free
    cluster."""
    alone = sum(run.seconds for run in plan.pending)
    if not alone:
        return 1.0
    cluster = plan.settings.cluster
    if cluster is None:
        return alone / planning.remaining(plan)
    return cluster.nodes * alone / sum(run.seconds * run.case.nodes for run in plan.pending)


def total(plan: Plan, jobs: Sequence[Job]) -> float:
    """Return the seconds until all ``jobs`` of a plan are done. A time budget replaces the seconds
    of all jobs except building environments."""
    budget = plan.settings.budget
    if budget is None or not jobs:
        return sum(job.seconds for job in jobs) / at_once(plan)
    return budget + sum(job.seconds for job in jobs if job.kind == "environment")


def check_total(plan: Plan, seconds: float) -> None:
    """Raise :class:`ConfigError` if a call takes more than a day and ``yes`` is not set."""
    if seconds <= DAY or plan.settings.yes:
        return
    raise ConfigError(
        f"{plan.settings.suite.path}: found {len(plan.pending)} runs, which take "
        f"{_text(plan, seconds)}; allowed: at most a day, or more with --config yes=true\n"
        "all of it: snakemake --cores all plan, with the same --config; less: frameworks=.., "
        "models=.., cases=.. or another suite"
    )


def lines(plan: Plan, jobs: Sequence[Job], reserve: Iterable[Job] = ()) -> list[str]:
    """Return the last lines of a plan: its jobs besides runs, what all request of a cluster, and
    how long they take. ``reserve``: jobs that may follow."""
    if not jobs:
        return []
    besides = [job for job in jobs if job.kind in ("peak_flops", "verification", "reference")]
    counts = Counter(job.kind for job in besides)
    named = ", ".join(count_of(counts[kind], kind) for kind in NOUNS if counts[kind])
    seconds = duration(sum(job.seconds for job in besides))
    result = [f"Besides runs: {named}, roughly {seconds}"] if besides else []
    if plan.settings.cluster:
        asked = [job for job in (*jobs, *reserve) if job.nodes]
        most = plan.settings.cluster.most_node_hours
        ceiling = f" (most_node_hours: {most:g})" if most else ""
        hours = f"at most {node_hours(plan, asked):.2f} node hours in all{ceiling}"
        result += [f"Requested of the cluster: {counted(len(asked), 'job')}, {hours}"]
    return [*result, f"In all {_text(plan, total(plan, jobs))}"]


def _text(plan: Plan, seconds: float) -> str:
    cluster = plan.settings.cluster
    if cluster is None:
        return f"about {duration(seconds)}"
    nodes = sum(run.seconds * run.case.nodes for run in plan.pending) / 3600
    return (
        f"about {duration(seconds)} if {cluster.nodes} nodes are free throughout "
        f"({nodes:.1f} node hours of runs; the time in the queue is not known)"
    )


def node_hours(plan: Plan, jobs: Iterable[Job]) -> float:
    """Return the node hours of jobs on a cluster, if each uses all of its time, and those of rounds
    that a time budget decides later."""
    hours = estimates.minutes(plan.settings) / 60
    return (plan.settings.budget or 0.0) / 3600 + hours * sum(job.nodes for job in jobs)


def check_node_hours(plan: Plan, jobs: Iterable[Job]) -> None:
    """Raise :class:`ConfigError` if jobs may use more node hours than ``most_node_hours``."""
    cluster = plan.settings.cluster
    most = cluster.most_node_hours if cluster else None
    if most is not None and (hours := node_hours(plan, jobs)) > most:
        raise ConfigError(
            f"config: cluster.most_node_hours: found jobs that may take {hours:.2f} node hours by "
            f"the time that they are asked for; allowed: at most {most:g}. Narrow the suite, or "
            "lower time_limit: snakemake plan has the sum"
        )
