"""The plan of a call: finished and pending runs, expected times and progress."""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from core.case import Case
from core.gpus import NOT_MET

from .. import PROJECT
from ..cases import fitting, matrix
from ..cases.fitting import Capacity, LeftOut
from ..config import values
from ..config.catalog import Catalog, load_catalog
from ..config.settings import Settings
from ..environments.software import choose, misfit
from ..files.json_files import newest_attempt
from ..machine.identities import is_here
from ..machine.local import Machine
from ..records import verifications
from ..records.record_sets import SEARCHES, RecordSet
from ..records.run import Run
from ..records.verified import VerificationFlags, without_excluded
from . import batch_searches, budget, case_settings, costs, estimates, repeats
from .case_settings import software
from .job import FIRST, Job, files_of, label_cases
from .plan import Plan


def make_plan(
    settings: Settings,
    catalog: Catalog,
    machine: Machine,
    cached: RecordSet | None,
    before: Plan | None = None,
    spent: float = 0.0,
) -> Plan:
    """Expand the suite and compare it with the records on disk.

    A record that is truncated, foreign or of another machine is kept, and its run is planned under
    the name of the next retry. A run is also repeated if the call measures again, or if its status
    is in ``retry``.

    ``before``: the plan of this call so far, whose runs and searches are done. ``spent``: seconds
    of the time budget.
    """
    settings = fitting.on_machine(settings, machine)
    stages, capacity = fitting.cases_here(settings, catalog, machine)
    everything = matrix.on_each_node([*stages], settings, machine)
    wanted = matrix.narrow(everything, settings)
    fitted, left_out = fitting.fit(wanted, capacity, catalog)
    unusable = _unusable(fitted, settings, catalog, capacity)
    usable = [case for case in fitted if case not in unusable]
    slow = costs.too_slow(usable, settings, capacity, catalog)
    recorded = cached.runs if cached else ()
    slow |= _after_a_hang(usable, settings, capacity, recorded, machine)
    left_out += [LeftOut(case, why) for case, why in [*unusable.items(), *slow.items()]]
    cases = [case for case in usable if case not in slow]
    larger = _with_larger_batch(cases, settings, capacity, catalog)
    cases += larger
    stages |= dict.fromkeys(larger, max(stages.values()) + 1)
    # Peak-FLOPS benchmarks use the default software, even where only variants run.
    names = [n for case in cases for n in (case.framework, software(case, settings.suite))]
    runs_in = choose(dict.fromkeys(names), settings, catalog, capacity.accelerator, capacity.gpus)
    requests = {
        case: case_settings.settings_of_case(case, settings, capacity, runs_in) for case in cases
    }
    memory = {"memory": machine.memory, "memory_limit": settings.memory_limit or "auto"}
    needs = batch_searches.needed(
        requests, settings.suite.largest_batch, memory, settings.results / SEARCHES,
        () if before else settings.retry,
    )  # fmt: skip
    known = {case: needs[case].largest if case in needs else case for case in cases}
    folders = {found: found.folder(requests[case]) for case, found in known.items() if found}
    in_folders = {*folders.values()}
    measured = [run for run in recorded if os.path.dirname(run.origin) in in_folders]
    runs = [run for run in measured if is_here(run.machine, machine.identity)]
    latest = {run.origin: run for run in runs}
    seconds, slower = estimates.expected_seconds(folders, settings, capacity, catalog, latest)
    plan = Plan(
        settings, capacity, folders, [], [], left_out, runs_in, len(latest), [*needs.values()],
        machine.identity,
        elsewhere=[run for run in measured if run.origin not in latest],
        scripts=values.from_here(catalog.root / "scripts"),
        is_whole=len(wanted) == len(everything),
        stages={found: stages.get(case, 0) for case, found in known.items() if found},
        seconds=seconds,
        slower=slower,
        larger=larger,
    )  # fmt: skip
    needed, leads = _needed(plan, runs, spent)
    # A single run is enough to record why a case is not measured.
    failed = (each for each in needs.values() if each.result and each.result.status != "ok")
    once = {search.largest for search in failed}.difference(cases)
    if settings.budget is None:
        needed |= {case: 1 for case in folders if case in once}
    done = {(run.case, run.repeat) for run in before.runs} if before else set()
    records = settings.results / "runs"
    begun = {case for case, folder in folders.items() if (records / folder).is_dir()}
    labels = label_cases(plan.cases)
    planned: dict[tuple[Case, int], Job] = {}
    reserve: dict[tuple[Case, int], Job] = {}
    most = max([settings.suite.repeats.at_most, *needed.values()])
    order = matrix.rounds(cases, most, settings.seed, settings.suite.own_model)
    for number, (asked, repeat) in enumerate(order):
        case = known[asked]
        # The largest batch may also be a requested one: both share the same runs.
        if case is None or (case, repeat) in planned or (case, repeat) in reserve:
            continue
        path, status = f"{folders[case]}/r{repeat}", ""
        if case in begun:
            is_done = (case, repeat) in done
            path, status = _record_of(folders[case], repeat, latest, settings, is_done)
        output, log = files_of(settings.results, "run", path)
        run = Job(
            "run", path, plan.seconds[case], output, log, case, repeat, status,
            software(asked, settings.suite), labels[case], FIRST - 1 - number,
        )  # fmt: skip
        if repeat <= needed[case]:
            planned[case, repeat] = run
        elif case not in once or repeat == 1:
            reserve[case, repeat] = run
    return replace(plan, runs=[*planned.values()], reserve=[*reserve.values()], leads=leads)


def _with_larger_batch(
    cases: Sequence[Case], settings: Settings, capacity: Capacity, catalog: Catalog
) -> dict[Case, Case]:
    """Return the cases that check another batch, each with the case that it checks."""
    times = settings.suite.batch_check if not settings.cases else None
    larger = {
        case._replace(batch_per_device=case.batch_per_device * times): case
        for case in cases
        if times and isinstance(case.batch_per_device, int)
    }
    fitted, _ = fitting.fit([*larger], capacity, catalog)
    return {case: larger[case] for case in fitted if case not in set(cases)}


def _unusable(
    cases: Iterable[Case], settings: Settings, catalog: Catalog, capacity: Capacity
) -> dict[Case, str]:
    """Return why cases cannot be measured: their software does not work on the GPUs of the machine,
    or lacks their precision."""

    @functools.cache
    def reason(name: str) -> str:
        return misfit(name, settings, catalog, capacity.accelerator, capacity.gpus)

    found = {
        case: reason(case.framework)
        or reason(software(case, settings.suite))
        or fitting.why_lacking(case, capacity, catalog)
        for case in cases
    }
    return {case: why for case, why in found.items() if why}


def _after_a_hang(
    cases: Iterable[Case],
    settings: Settings,
    capacity: Capacity,
    runs: Iterable[Run],
    machine: Machine,
) -> dict[Case, str]:
    """Return why cases of several GPUs are not measured: ranks of another case did not meet on GPUs
    of this machine, and each such run would wait for minutes."""
    if capacity.accelerator == "cpu" or "failed" in settings.retry:
        return {}
    here = [run for run in runs if run.case.devices > 1 and is_here(run.machine, machine.identity)]
    begun = {run.case._replace(framework_version="", source="") for run in here}
    hangs = [run.reason for run in here if NOT_MET in run.reason]
    reason = f"{hangs[0]}; once it is mended: --config retry=failed" if hangs else ""
    new = [case for case in cases if case.devices > 1 and case not in begun]
    return dict.fromkeys(new if reason else [], reason)


def remaining(plan: Plan) -> float:
    """Return the expected seconds until the pending runs are done."""
    return seconds_for(plan, plan.pending)


def seconds_for(plan: Plan, runs: Iterable[Job]) -> float:
    """Return the expected seconds of ``runs``; for runs side by side a lower bound."""
    runs = list(runs)
    beside = [
        run.seconds for run in runs if case_settings.is_beside(run.case.devices, plan.settings)
    ]
    alone = sum(run.seconds for run in runs) - sum(beside)
    return alone + max([sum(beside) / plan.capacity.devices_per_node, *beside])


def total_seconds(plan: Plan, jobs: Sequence[Job]) -> float:
    """Return the seconds until all ``jobs`` of a plan are done. A time budget replaces all of them
    but the building of environments."""
    budget = plan.settings.budget
    if budget is None or not jobs:
        return seconds_for(plan, jobs)
    return budget + sum(job.seconds for job in jobs if job.kind == "environment")


def node_hours(plan: Plan, jobs: Iterable[Job]) -> float:
    """Return the node hours of jobs on a cluster, if each uses all of its time, and those of rounds
    that a time budget decides later."""
    hours = estimates.minutes(plan.settings) / 60
    return (plan.settings.budget or 0.0) / 3600 + hours * sum(job.nodes for job in jobs)


def _needed(
    plan: Plan, runs: Sequence[Run], spent: float
) -> tuple[dict[Case, int], tuple[int, int]]:
    """Return the number of repeats that each case should have, given its runs; and with a time
    budget the settled leads and all leads, else (0, 0)."""
    suite, in_folder = plan.settings.suite, defaultdict[str, list[Run]](list)
    for run in runs:
        in_folder[os.path.dirname(run.origin)].append(run)
    present = {case: in_folder[folder] for case, folder in plan.folders.items()}
    if suite.repeats.margin is not None:
        return repeats.wanted_pairs(present, suite), (0, 0)
    if plan.settings.budget is None:
        return dict.fromkeys(present, suite.repeats.at_least), (0, 0)
    # Excluded figures do not affect the decision.
    results, _ = verifications.load(plan.settings.results / verifications.KIND)
    flags = VerificationFlags(results, load_catalog(PROJECT).models)
    compared: dict[Case, Sequence[Run]] = {
        case: without_excluded(some, flags) for case, some in present.items()
    }
    left, around = costs.time_left(plan, spent)
    cases = costs.measured_cases(plan, compared, around)
    wanted, failing = budget.wanted(cases, left, suite.repeats.at_most), plan.failing
    there = [some for some in cases if software(some.case, suite) not in failing]
    if there and failing:
        wanted |= budget.wanted(there, left, suite.repeats.at_most)
    return wanted, budget.leads(there or cases)


def _record_of(
    folder: str, repeat: int, latest: dict[str, Run], settings: Settings, is_done: bool
) -> tuple[str, str]:
    """Return path and status of a repeat's valid record; else the first free path and "".

    ``is_done``: this call has measured the repeat. Then an unreadable record is a failure, which
    the next call measures again.
    """
    is_outdated = False

    def read_status(path: Path) -> str | None:
        nonlocal is_outdated
        run = latest.get(f"{folder}/{path.name}")
        if run and not is_done:
            again = run.status in settings.retry or run.crowded_out
            is_outdated |= settings.measures_again or again
        if is_outdated or not (run or is_done):
            return None
        return run.status if run else "failed"

    records = settings.results / "runs" / folder
    name, status = newest_attempt(records, f"r{repeat}", read_status)
    return f"{folder}/{name}", status or ""
