"""Expected duration of a whole call, and the refusal of more than a day without a yes."""

from __future__ import annotations

from collections.abc import Mapping

from ..config.validation import ConfigError
from ..plan import planning
from ..plan.forecast import DAY, Forecast, time_left
from ..plan.planning import Plan
from . import jobs
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

#: Kinds of jobs that a time budget does not pay for.
_BEYOND_BUDGET = ("environment",)


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
        return time_left(total)
    nodes = sum(run.seconds * run.case.nodes for run in plan.pending) / 3600
    return (
        f"{time_left(total)} if {cluster.nodes} nodes are free throughout "
        f"({nodes:.1f} node hours of runs; the time in the queue is not known)"
    )
