"""Expected duration of a whole call, and shorter alternatives to a call of more than a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from core.case import Case

from ..config import suite as suites
from ..config.catalog import Catalog
from ..config.validation import ConfigError, NotAllowed
from ..machine.local import Machine
from ..plan import planning, targets
from ..plan.forecast import DAY, Forecast, Left, time_left
from ..plan.planning import Plan
from ..records.record_sets import RecordSet
from . import jobs, peak_flops, verify
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

#: Most axis values that are named as slow, and the least part of the time of each.
_MOST, _LARGE = 3, 0.3
#: Axes that explain a long call, with the text of their values.
_AXES: dict[str, Callable[[Case], str]] = {
    "framework": lambda case: case.framework,
    "model": lambda case: case.model,
    "mode": lambda case: case.mode,
    "precision": lambda case: case.precision,
    "nodes and devices": lambda case: case.topology,
    "batch_per_device": lambda case: str(case.batch_per_device),
}


#: Kinds of jobs that a time budget does not pay for.
_BEYOND_BUDGET = ("environment",)


class Less(NamedTuple):
    """A shorter alternative to a call: ``key=value``, and its seconds."""

    words: str
    seconds: float


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
) -> Left:
    """Return the seconds until all jobs of the plan are done, see :func:`jobs.of_all`.

    A time budget replaces the measuring ones among them.
    """
    pending = list(jobs.of_all(plan, peak_flops_of, verifications_of))
    budget = plan.settings.budget
    if budget is None or not pending:
        return Forecast(pending, at_once(plan)).left(0.0)
    other = Forecast(job for job in pending if job.kind in _BEYOND_BUDGET).left(0.0)
    return Left(*(budget + seconds for seconds in other))


def check(plan: Plan, total: Left, less: Callable[[], list[str]]) -> None:
    """Raise :class:`ConfigError` if a call takes more than a day and ``yes`` is not set.

    ``less``: returns lines on shorter alternatives.
    """
    if total.seconds <= DAY or plan.settings.yes:
        return
    raise ConfigError(
        "\n".join(
            [
                f"{plan.settings.suite.path}: found {len(plan.pending)} runs, which take "
                f"{_text(plan, total)}; allowed: at most a day, or more with --config yes=true",
                *less(),
                "all of it: snakemake --cores all plan, with the same --config",
            ]
        )
    )


def lines(plan: Plan, total: Left) -> list[str]:
    """Return the line with the total duration, at the end of a plan."""
    return [f"In all {_text(plan, total)}"] if total.seconds else []


def _text(plan: Plan, total: Left) -> str:
    cluster = plan.settings.cluster
    if cluster is None:
        return time_left(total)
    nodes = sum(run.seconds * run.case.nodes for run in plan.pending) / 3600
    return (
        f"{time_left(total)} if {cluster.nodes} nodes are free throughout "
        f"({nodes:.1f} node hours of runs; the time in the queue is not known)"
    )


def advice(
    plan: Plan, total: Left, catalog: Catalog, machine: Machine, cached: RecordSet | None
) -> list[str]:
    """Return lines on the slowest parts of a call of more than a day, and shorter alternatives."""
    largest = ", ".join(f"{value} {part * 100:.0f} %" for value, part in _largest(plan))
    other = [*_narrower(plan, total), *_suites(plan, catalog, machine, cached)]
    shorter = sorted(
        (less for less in other if less.seconds <= DAY), key=lambda less: -less.seconds
    )
    found = [f"  {less.words}  {time_left(Left(*[less.seconds] * 3))}" for less in shorter]
    return [
        *([f"most of the time: {largest}"] if largest else []),
        *(["under a day:", *found] if found else ["no suite of these workloads takes less here"]),
    ]


def _parts(plan: Plan, value_of: Callable[[Case], str]) -> dict[str, float]:
    """Return the fraction of the time of pending runs, by a value of their cases."""
    parts: dict[str, float] = defaultdict(float)
    whole = sum(run.seconds for run in plan.pending)
    for run in plan.pending:
        parts[value_of(run.case)] += run.seconds / whole
    return parts


def _largest(plan: Plan) -> list[tuple[str, float]]:
    parts = [
        (f"{axis} {value}", part)
        for axis, value_of in _AXES.items()
        for value, part in _parts(plan, value_of).items()
        if value and _LARGE <= part < 0.995
    ]
    return sorted(parts, key=lambda part: -part[1])[:_MOST]


def _narrower(plan: Plan, total: Left) -> Iterator[Less]:
    for key, axis in (("frameworks", "framework"), ("models", "model")):
        for value, part in _parts(plan, _AXES[axis]).items():
            if part < 1:
                yield Less(f"{key}={value}", part * total.seconds)


def _suites(
    plan: Plan, catalog: Catalog, machine: Machine, cached: RecordSet | None
) -> Iterator[Less]:
    """Yield the shipped suites that share a pending workload with this one."""
    wanted = _workloads(plan)
    for file in sorted((catalog.root / "config" / "suites").glob("*.yaml")):
        try:
            given = plan.settings
            other = suites.load_suite(
                file.stem, catalog, given.kinds, given.storage, given.data, given.results
            )
            settings = given.model_copy(update={"suite": other})
            planned = planning.make_plan(settings, catalog, machine, cached)
            targets.check_data(planned, catalog)
        except (ConfigError, NotAllowed):
            continue
        if not wanted & _workloads(planned) or file.stem == plan.settings.suite.name:
            continue
        verifications = verify.small(
            planned, catalog, verify.names(planned, catalog, verify.full_size(planned, catalog))
        )
        seconds = left(planned, peak_flops.names(planned), verifications).seconds
        yield Less(f"suite={file.stem}", seconds)


def _workloads(plan: Plan) -> set[tuple[str, str]]:
    """Return model and mode of the pending runs."""
    reserve = plan.reserve if plan.settings.budget else []
    return {(run.case.model, run.case.mode) for run in [*plan.pending, *reserve]}
