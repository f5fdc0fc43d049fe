"""Planning of a call: finished and pending runs, and the repeats that each case should have."""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from core.case import Case
from core.gpus import NOT_MET

from ..cases import fitting, matrix
from ..cases.fitting import Capacity, LeftOut
from ..config.catalog import Catalog, project_catalog
from ..config.settings import Settings
from ..config.suite import Suite
from ..environments.software import find_software, misfit
from ..files.json_files import newest_attempt
from ..machine.identities import is_here
from ..machine.local import Machine
from ..records import verifications
from ..records.record_sets import RecordSet
from ..records.run import Run, paired_ratios
from ..records.verified import VerificationFlags, without_excluded
from . import budget, case_settings, costs, estimates
from .case_settings import software
from .job import FIRST, Job, files_of, label_cases
from .plan import Plan, batch_searches


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
    is in ``retry``. ``before``: the plan of this call so far, whose runs and searches are done;
    ``spent``: seconds of the time budget.
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
    runs_in = {
        name: find_software(name, settings, catalog, capacity) for name in dict.fromkeys(names)
    }
    requests = {
        case: case_settings.settings_of_case(case, settings, capacity, runs_in) for case in cases
    }
    needs = batch_searches(requests, settings, machine.memory, () if before else settings.retry)
    known = {case: needs[case].largest if case in needs else case for case in cases}
    folders = {found: found.folder(requests[case]) for case, found in known.items() if found}
    in_folders = {*folders.values()}
    measured = [run for run in recorded if os.path.dirname(run.origin) in in_folders]
    runs = [run for run in measured if is_here(run.machine, machine.identity)]
    latest = {run.origin: run for run in runs}
    seconds, slower = estimates.expected_seconds(folders, settings, capacity, catalog, latest)
    # A command with a relative path is valid on every machine.
    here, scripts = Path.cwd(), catalog.root / "scripts"
    plan = Plan(
        settings, capacity, folders, [], [], left_out, runs_in, len(latest), [*needs.values()],
        machine.identity,
        elsewhere=[run for run in measured if run.origin not in latest],
        scripts=scripts.relative_to(here) if scripts.is_relative_to(here) else scripts,
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
        return misfit(name, settings, catalog, capacity)

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
    """Return why cases of several GPUs are not measured: ranks of another case never connected on
    this machine's GPUs, and each further run would wait for minutes, too."""
    if capacity.accelerator == "cpu" or "failed" in settings.retry:
        return {}
    here = [run for run in runs if run.case.devices > 1 and is_here(run.machine, machine.identity)]
    begun = {run.case._replace(framework_version="", source="") for run in here}
    hangs = [run.reason for run in here if NOT_MET in run.reason]
    reason = f"{hangs[0]}; once it is repaired: --config retry=failed" if hangs else ""
    new = [case for case in cases if case.devices > 1 and case not in begun]
    return dict.fromkeys(new if reason else [], reason)


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
        return wanted_pairs(present, suite), (0, 0)
    if plan.settings.budget is None:
        return dict.fromkeys(present, suite.repeats.at_least), (0, 0)
    # Excluded figures do not affect the decision.
    results, _ = verifications.load(plan.settings.results / verifications.KIND)
    flags = VerificationFlags(results, project_catalog().models)
    compared: dict[Case, Sequence[Run]] = {
        case: without_excluded(some, flags) for case, some in present.items()
    }
    left, around = costs.time_left(plan, spent)
    cases = costs.measured_cases(plan, compared, around)
    wanted, failing = budget.wanted(cases, left, suite.repeats.at_most), plan.failing
    built = [some for some in cases if software(some.case, suite) not in failing]
    if built and failing:
        wanted |= budget.wanted(built, left, suite.repeats.at_most)
    return wanted, budget.leads(built or cases)


def _record_of(
    folder: str, repeat: int, latest: dict[str, Run], settings: Settings, is_done: bool
) -> tuple[str, str]:
    """Return path and status of a repeat's valid record; else the first free path and "".
    ``is_done``: this call has measured the repeat. Then an unreadable record is a failure, which
    the next call measures again."""
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


def wanted_pairs(runs: Mapping[Case, Sequence[Run]], suite: Suite) -> dict[Case, int]:
    """Return the number of repeats that each case of a performance gate should have. ``runs``: all
    earlier runs.

    The two variants of a gate's suite are base and candidate, in this order. A case is measured
    further until the group-sequential test (:mod:`statistics.sequential`) decides all its metrics.
    A case with a run that was not ok gets no more.
    """
    from ..statistics import sequential  # here: most plans need no numpy

    margin, at_most = suite.repeats.margin, suite.repeats.at_most
    assert margin is not None, "called only for performance gates"
    sides: dict[Case, list[Case]] = defaultdict(list)
    order = [*suite.variants]
    for case in sorted(runs, key=lambda case: order.index(case.variant)):
        sides[matrix.without_variant(case, suite.own_model)].append(case)
    ratios = {shared: [*_ratios(*(runs[case] for case in both))] for shared, both in sides.items()}
    count = sum(map(len, ratios.values()))
    results = {}
    for shared, both in sides.items():
        some = [run for case in both for run in runs[case]]
        planned = max([suite.repeats.at_least, *(run.repeat for run in some)])
        complete = len(some) == len(both) * planned and all(run.status == "ok" for run in some)
        pairs = min(map(len, ratios[shared]), default=0)
        look = sequential.next_look(pairs)
        tested = ratios[shared]
        if suite.repeats.two_sided:
            tested = [*tested, *([1 / ratio for ratio in entry] for entry in tested)]
        is_open = any(
            not sequential.bounds(entry, margin, count).decides(margin) for entry in tested
        )
        # Repeats without a pair are replaced by further ones.
        needed = planned + look - pairs if complete and is_open and look else planned
        results.update(dict.fromkeys(both, needed if needed <= at_most else planned))
    return results


def _ratios(base: Sequence[Run], candidate: Sequence[Run] = ()) -> Iterator[list[float]]:
    """Yield the ratios of the pairs for each metric that has pairs; above 1 is better."""
    old, new = ([run for run in side if run.status == "ok"] for side in (base, candidate))
    for metric in old[0].metrics if old else ():
        below, above = (old, new) if metric.better == "higher" else (new, old)
        values = [run.value(metric.name, metric.point) for run in (*old, *new)]
        if all(value is None or value > 0 for value in values) and (
            found := paired_ratios(below, above, metric.name, metric.point)
        ):
            yield found
