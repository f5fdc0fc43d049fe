"""Jobs of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from core.case import Case

from ..config import own_model
from ..config.catalog import Catalog
from ..environments.soundness import is_sound
from ..plan import case_settings, estimates, limits
from ..plan.batch_searches import BatchSearch
from ..plan.jobs import Job, JobRequest, log_of, record_of
from ..plan.planning import Plan, PlannedRun
from ..records.verifications import SMALL
from . import commands, peak_flops, verify
from .peak_flops import PeakFlopsBenchmark
from .verify import Verification

#: Rough seconds for tables and report.
TABLES_SECONDS = 3.0


def usual(plan: Plan, nodes: int = 1, devices: int = 1, node: str = "") -> JobRequest:
    """Return the request of a job with the configured time limit of a run.

    It has no time without a cluster.
    """
    minutes = limits.minutes(plan.settings) if plan.settings.cluster else 0
    return JobRequest(nodes, devices, minutes, node)


def of_run(plan: Plan, run: PlannedRun, case: str = "", is_measured: bool = False) -> Job:
    """Return the job of a run. ``case``: label of the case; ``is_measured``: it has records."""
    one = run.case
    request = usual(plan, one.nodes, one.devices_per_node, one.node)
    if one in plan.minutes:
        request = request._replace(minutes=plan.minutes[one])
    job = _job(
        plan, "run", run.name, run.seconds, f"{case} r{run.repeat}",
        case_settings.software(one, plan.settings.suite), request,
        partial(commands.arguments, plan, run),
    )  # fmt: skip
    return job._replace(group=run.name.rpartition("/")[0], is_measured=is_measured)


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
    )  # fmt: skip


def of_peak_flops(plan: Plan, name: str, benchmark: PeakFlopsBenchmark) -> Job:
    """Return the job of a peak-FLOPS benchmark; ``name``: of its record."""
    return _job(
        plan, "peak_flops", name, peak_flops.seconds_of(plan, benchmark), f"peak of {benchmark}",
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
    seconds, label = estimates.ENVIRONMENT_SECONDS, f"environment {name}"
    return Job(f"environment/{name}-{digest}", "environment", name, seconds, label=label)


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


def behind_runs(
    plan: Plan,
    catalog: Catalog,
    verifications_of: Mapping[str, Verification],
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    given: Collection[str],
) -> dict[str, list[Job]]:
    """Return the missing checks that follow a pending run in its process, by the run's name: small
    verifications, and the peak-FLOPS benchmark of one device.

    The first run that can have a check has it. On a cluster none has, because jobs do not wait for
    each other there; nor beside other runs, which would share the devices with it. ``given``: names
    of the checks that follow runs already.
    """
    settings = plan.settings
    if settings.cluster or settings.side_by_side:
        return {}
    to_verify: dict[Case, list[Job]] = defaultdict(list)
    for name, verification in verify.missing(settings.results, verifications_of).items():
        if verification.scale == SMALL:
            folder = reference_folder(plan, catalog, verification)
            to_verify[verification.case].append(of_verification(plan, name, verification, folder))
    to_measure = {
        (peak_flops_of[name].framework, peak_flops_of[name].precision): of_peak_flops(
            plan, name, peak_flops_of[name]
        )
        for name in peak_flops.missing(settings.results, peak_flops_of)
        if peak_flops_of[name].devices == 1
    }
    results: dict[str, list[Job]] = {}
    seen: set[Case] = set()
    for run in plan.pending:
        case = run.case
        if case in seen or not (to_verify or to_measure):
            continue
        seen.add(case)
        is_usual = case_settings.software(case, settings.suite) == case.framework
        if case.devices > 1 or not is_usual or commands.variant_options(plan, case):
            continue
        checks = to_verify.pop(verify.alone(case), [])
        checks += filter(None, [to_measure.pop((case.framework, case.precision), None)])
        if checks := [check for check in checks if check.name not in given]:
            results[run.name] = checks
    return results


def _measuring(
    plan: Plan,
    peak_flops_of: Mapping[str, PeakFlopsBenchmark],
    verifications_of: Mapping[str, Verification],
) -> Iterator[Job]:
    results = plan.settings.results
    for software in plan.needed.values():
        if software.file and software.marker and not is_sound(software.marker):
            name, _, digest = software.file.name.rpartition("-")
            yield of_environment(name, digest)
    for search in plan.unsearched:
        yield of_search(plan, search)
    measured = plan.measured
    for run in plan.pending:
        yield of_run(plan, run, is_measured=run.case in measured)
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
        f"{kind}/{path}", kind, path, seconds, False, label, record, log, software, request,
        arguments,
    )  # fmt: skip
