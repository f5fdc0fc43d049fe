"""Forecast of the time left: expected seconds of each job that has not ended; and the refusal of a
call of more than a day without a yes."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping

from core.text import duration

from ..config.validation import ConfigError
from ..plan import planning
from ..plan.job import Job
from ..plan.planning import Plan
from . import jobs
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

#: Seconds of a day.
DAY = 86400.0
#: Kinds of jobs that a time budget does not pay for.
_BEYOND_BUDGET = ("environment",)


class Forecast:
    """Time left for ``jobs``, of which ``at_once`` run concurrently.

    A job is expected to take the median of its case in this call, else its estimate.
    """

    def __init__(self, jobs: Iterable[Job], at_once: float = 1.0) -> None:
        self._left: dict[str, Job] = {}
        self._running: dict[str, float] = {}
        self._at_once = at_once
        self._cases: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add new jobs."""
        self._left.update((job.name, job) for job in jobs)

    def start(self, name: str, now: float) -> None:
        """Note that a job begins ``now``, in seconds since the start of the call."""
        if name in self._left:
            self._running[name] = now

    def finish(self, name: str, seconds: float) -> None:
        """Note that a job ended after so many ``seconds``; unknown jobs are ignored."""
        job = self._left.pop(name, None)
        self._running.pop(name, None)
        if job:
            self._cases[job.kind, job.group].append(seconds)

    def left(self, now: float) -> float:
        """Return the seconds left ``now``, in seconds since the start of the call."""
        work = 0.0
        for name, job in self._left.items():
            own = self._cases.get((job.kind, job.group))
            seconds = statistics.median(own) if own else job.seconds
            work += max(0.0, seconds - (now - self._running.get(name, now)))
        return work / self._at_once


def at_once(plan: Plan) -> float:
    """Return the most run seconds per wall second: concurrent runs here, or on a fully free
    cluster."""
    alone = sum(run.seconds for run in plan.pending)
    if not alone:
        return 1.0
    cluster = plan.settings.cluster
    if cluster is None:
        return alone / planning.remaining(plan)
    return cluster.nodes * alone / sum(run.seconds * run.case.nodes for run in plan.pending)


def left(
    plan: Plan,
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    verifications_of: Mapping[str, Verification],
) -> float:
    """Return the seconds until all jobs of the plan are done, see :func:`jobs.of_all`.

    A time budget replaces the measuring ones among them.
    """
    pending = list(jobs.of_all(plan, peak_flops_of, verifications_of))
    budget = plan.settings.budget
    if budget is None or not pending:
        return Forecast(pending, at_once(plan)).left(0.0)
    return budget + sum(job.seconds for job in pending if job.kind in _BEYOND_BUDGET)


def check(plan: Plan, total: float) -> None:
    """Raise :class:`ConfigError` if a call takes more than a day and ``yes`` is not set."""
    if total <= DAY or plan.settings.yes:
        return
    raise ConfigError(
        f"{plan.settings.suite.path}: found {len(plan.pending)} runs, which take "
        f"{_text(plan, total)}; allowed: at most a day, or more with --config yes=true\n"
        "all of it: snakemake --cores all plan, with the same --config; less: frameworks=.., "
        "models=.., cases=.. or another suite"
    )


def lines(plan: Plan, total: float) -> list[str]:
    """Return the line with the total duration, at the end of a plan."""
    return [f"In all {_text(plan, total)}"] if total else []


def _text(plan: Plan, total: float) -> str:
    cluster = plan.settings.cluster
    if cluster is None:
        return f"about {duration(total)}"
    nodes = sum(run.seconds * run.case.nodes for run in plan.pending) / 3600
    return (
        f"about {duration(total)} if {cluster.nodes} nodes are free throughout "
        f"({nodes:.1f} node hours of runs; the time in the queue is not known)"
    )
