"""Tasks of a call with their expected seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..environments.soundness import is_sound
from ..plan import estimates
from ..plan.batch_searches import BatchSearch
from ..plan.planning import Plan, PlannedRun
from ..plan.tasks import PendingTask, name_of
from . import peak_flops, verify
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

#: Rough seconds for tables and report.
TABLES_SECONDS = 3.0


def of_run(run: PlannedRun, is_measured: bool) -> PendingTask:
    """Return the task of a run; ``is_measured``: its case has records."""
    name = _name(run.name, "framework", "model", "case", "run")
    return PendingTask(name, "run", run.name.rpartition("/")[0], run.seconds, is_measured)


def of_search(plan: Plan, search: BatchSearch) -> PendingTask:
    """Return the task of a search for the largest batch."""
    name = _name(search.name, "framework", "model", "search")
    return PendingTask(name, "search", search.name, plan.seconds_of(search))


def of_comparison(plan: Plan, name: str, one: Verification) -> PendingTask:
    """Return the task of a verification; ``name``: of its file, without ``.json``."""
    task = _name(name, "framework", "reference", "comparison")
    return PendingTask(task, "comparison", name, verify.seconds_of(plan, one))


def of_probe(plan: Plan, name: str, one: PeakFlopsBenchmark) -> PendingTask:
    """Return the task of a peak-FLOPS benchmark; ``name``: of its file, without ``.json``."""
    return PendingTask(
        _name(name, "framework", "probe"), "probe", name, peak_flops.seconds_of(plan, one)
    )


def of_reference(plan: Plan, name: str) -> PendingTask:
    """Return the task that computes a reference."""
    return PendingTask(f"reference/{name}", "reference", name, verify.reference_seconds(plan))


def of_environment(name: str) -> PendingTask:
    """Return the task that builds an environment; ``name``: of its file."""
    return PendingTask(f"environment/{name}", "environment", name, estimates.ENVIRONMENT_SECONDS)


def of_tables() -> PendingTask:
    """Return the task that makes tables and report."""
    return PendingTask("tables", "tables", "", TABLES_SECONDS)


def of_all(
    plan: Plan, probes_of: Mapping[str, PeakFlopsBenchmark], comparisons: Mapping[str, Verification]
) -> list[PendingTask]:
    """Return the tasks of a call for the plan, without runs that depend on a pending search."""
    tasks = [*_measuring(plan, probes_of, comparisons)]
    return [*tasks, of_tables()] if tasks else []


def _measuring(
    plan: Plan, probes_of: Mapping[str, PeakFlopsBenchmark], comparisons: Mapping[str, Verification]
) -> Iterator[PendingTask]:
    results = plan.settings.results
    for one in plan.needed.values():
        if one.file and one.marker and not is_sound(one.marker):
            yield of_environment(one.file.name)
    for search in plan.unsearched:
        yield of_search(plan, search)
    measured = plan.measured
    for run in plan.pending:
        yield of_run(run, run.case in measured)
    for name in peak_flops.missing(results, probes_of):
        yield of_probe(plan, name, probes_of[name])
    to_make = verify.missing(results, comparisons)
    for name, comparison in to_make.items():
        yield of_comparison(plan, name, comparison)
    for reference in verify.references(results, to_make.values()):
        yield of_reference(plan, reference)


def _name(path: str, *wildcards: str) -> str:
    return name_of(dict(zip(wildcards, path.split("/"), strict=True)), "")
