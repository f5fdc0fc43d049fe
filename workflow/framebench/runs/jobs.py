"""Jobs of a plan."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from ..config import own_model
from ..config.catalog import Catalog
from ..environments.software import unbuilt
from ..plan import case_settings, estimates
from ..plan.batch_searches import BatchSearch
from ..plan.job import Job, JobRequest, log_of, marker_of, record_of
from ..plan.planning import Plan, PlannedRun
from ..records.verifications import SMALL
from . import commands, peak_flops, verify
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

#: Rough seconds for tables and report.
TABLES_SECONDS = 3.0
#: Most checks in a process: their arguments fit into one command line.
MOST_CHECKS = 50


def usual(plan: Plan, nodes: int = 1, devices: int = 1, node: str = "") -> JobRequest:
    """Return the request of a job with the configured time limit of a run.

    It has no time without a cluster.
    """
    minutes = estimates.minutes(plan.settings) if plan.settings.cluster else 0
    return JobRequest(nodes, devices, minutes, node)


def of_run(plan: Plan, run: PlannedRun, case: str = "") -> Job:
    """Return the job of a run. ``case``: label of the case."""
    one = run.case
    request = usual(plan, one.nodes, one.devices_per_node, one.node)
    job = _job(
        plan, "run", run.name, run.seconds, case,
        case_settings.software(one, plan.settings.suite), request,
        partial(commands.arguments, plan, run),
    )  # fmt: skip
    return job._replace(group=run.name.rpartition("/")[0])


def of_search(plan: Plan, search: BatchSearch, case: str = "") -> Job:
    """Return the job of a search for the largest batch. ``case``: label of the case."""
    one = search.case
    return _job(
        plan, "search", search.name, plan.seconds_of(search), f"largest batch of {case}",
        case_settings.software(one, plan.settings.suite),
        usual(plan, one.nodes, one.devices_per_node, one.node),
        partial(commands.search_arguments, plan, search),
    )  # fmt: skip


def of_verification(plan: Plan, name: str, verification: Verification, reference: str = "") -> Job:
    """Return the job of a verification.

    ``name``: of its record; ``reference``: folder, "" for a user's own model.
    """
    return _job(
        plan, "verification", name, verify.seconds_of(plan, verification),
        f"verification of {verification}",
        verification.software, usual(plan, devices=verification.case.devices),
        partial(verify.arguments, plan, verification, reference),
    )._replace(reference=reference)  # fmt: skip


def of_peak_flops(plan: Plan, name: str, benchmark: PeakFlopsBenchmark) -> Job:
    """Return the job of a peak-FLOPS benchmark; ``name``: of its record."""
    return _job(
        plan, "peak_flops", name, estimates.of_peak(benchmark.framework, plan.capacity),
        f"peak of {benchmark}",
        benchmark.framework, usual(plan, devices=benchmark.devices),
        partial(peak_flops.arguments, plan, benchmark),
    )  # fmt: skip


def of_reference(plan: Plan, name: str, digest: str = "") -> Job:
    """Return the job that computes a reference; ``name``: its model and sequence length."""
    seconds, label = verify.reference_seconds(plan), f"reference of {name}"
    return Job(
        f"reference/{name}-{digest}", "reference", name, seconds, label=label, request=usual(plan)
    )


def of_environment(name: str, digest: str) -> Job:
    """Return the job that builds an environment."""
    path, label = f"environment/{name}-{digest}", f"environment {name}"
    return Job(path, "environment", name, estimates.ENVIRONMENT_SECONDS, label=label)


def of_tables(name: str = "tables") -> Job:
    """Return the job that makes tables and report; ``name``: of its rule."""
    return Job(name, "tables", "", TABLES_SECONDS, label="tables and report")


def of_all(
    plan: Plan,
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    verifications_of: Mapping[str, Verification],
) -> list[Job]:
    """Return the jobs of a call for the plan, without runs that depend on a pending search."""
    jobs = [*_measuring(plan, peak_flops_of, verifications_of)]
    return [*jobs, of_tables()] if jobs else []


def reference_folder(plan: Plan, catalog: Catalog, verification: Verification) -> str:
    """Return the reference folder of a verification; "" for a user's own model."""
    if verification.scale == own_model.SCALE:
        return ""
    digest = verify.reference_digest(catalog, verification.case.model, plan.settings.seed)
    return f"{plan.settings.results}/reference/{verification.reference}-{digest}"


def checks_job(plan: Plan, path: str, parts: Sequence[Job]) -> Job:
    """Return the job of checks that share software and variables; ``path``: of its marker."""
    results, first = plan.settings.results, parts[0]
    return Job(
        f"checks/{path}",
        "checks",
        path,
        0.0,
        label=f"{len(parts)} checks of {first.software}",
        record=marker_of(results, path),
        software=first.software,
        request=first.request,
        arguments=partial(commands.check_arguments, parts),
        parts=tuple(parts),
    )


def group_checks(
    plan: Plan,
    verifications_of: Mapping[str, Verification],
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    known: Collection[str] = (),
) -> dict[str, list[str]]:
    """Return the names of missing checks on one device that share a process, by the path of their
    marker: verifications of small models and peak-FLOPS benchmarks in the same software, with the
    same variables. On a cluster each has a job of its own. ``known``: names of checks that have a
    process."""
    results = plan.settings.results
    if plan.settings.cluster:
        return {}
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = defaultdict(list)
    for name, check in verify.missing(results, verifications_of).items():
        if check.scale == SMALL and check.case.devices == 1:
            groups[check.software, check.variables].append(f"verification/{name}")
    for name in peak_flops.missing(results, peak_flops_of):
        if peak_flops_of[name].devices == 1:
            groups[peak_flops_of[name].framework, ()].append(f"peak_flops/{name}")
    found = {}
    for names in groups.values():
        new = [name for name in names if name not in known]
        for start in range(0, len(new), MOST_CHECKS):
            parts = new[start : start + MOST_CHECKS]
            digest = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]
            if len(parts) > 1:
                found[f"{parts[0].split('/')[1]}/{digest}"] = parts
    return found


def _measuring(
    plan: Plan,
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    verifications_of: Mapping[str, Verification],
) -> Iterator[Job]:
    results = plan.settings.results
    for software in unbuilt(plan.needed.values()):
        if software.file:
            name, _, digest = software.file.name.rpartition("-")
            yield of_environment(name, digest)
    for search in plan.unsearched:
        yield of_search(plan, search)
    for run in plan.pending:
        yield of_run(plan, run)
    for name in peak_flops.missing(results, peak_flops_of):
        yield of_peak_flops(plan, name, peak_flops_of[name])
    to_make = verify.missing(results, verifications_of)
    for name, check in to_make.items():
        yield of_verification(plan, name, check)
    for reference in verify.references(results, to_make.values()):
        yield of_reference(plan, reference)


def _job(
    plan: Plan,
    kind: str,
    path: str,
    seconds: float,
    label: str,
    software: str,
    request: JobRequest,
    arguments: Callable[[], list[str]],
) -> Job:
    results = plan.settings.results
    record, log = record_of(results, kind, path), log_of(results, kind, path)
    return Job(
        f"{kind}/{path}", kind, path, seconds, label, record, log, software, request, arguments
    )
