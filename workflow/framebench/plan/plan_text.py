"""Text of a plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from core.case import Case
from core.text import counted, duration, minutes

from .. import PROJECT
from ..cases import names
from ..config import gpu_environments
from ..config.repeats import FIRST_LOOK
from ..config.statuses import FAILURES
from ..environments.software import unbuilt
from ..machine import local
from . import budget, call_text, costs
from .estimates import ENVIRONMENT_SECONDS
from .job import Job
from .plan import Plan
from .planning import remaining, seconds_for

#: Bytes of shared memory below which several GPUs may fail.
SHARED = 2**30

#: Largest number of cases whose names are listed, and of calls whose answers are.
MOST_NAMES, MOST_CALLS = 12, 3


def describe(plan: Plan) -> str:
    """Return the plan as text: runs of each workload, excluded cases with reasons, and time."""
    suite = plan.settings.suite
    lines = [
        f"Suite {suite.name} ({suite.path})",
        f"  {counted(len(plan.folders) - len(plan.larger), 'case')} x {suite.repeats} repeats"
        f"{_until(plan)} = {counted(len(plan.runs), 'run')}{_steps(plan)}",
        *(f"  {line}" for line in _machine(plan)),
        *(f"  {line}" for line in [*other_machine_lines(plan), *left_as_they_are(plan)]),
    ]
    provided = sorted((name, known) for name, known in plan.software.items() if not known.file)
    lines += [f"  {name}: {software}" for name, software in provided if name]
    if plan.searches:
        to_do = names.frameworks(search.case for search in plan.unsearched)
        which = f" ({names.listed(to_do)}), and then the runs with them" if to_do else ""
        count = f"{len(plan.unsearched)} of {len(plan.searches)}"
        lines += ["", f"Largest batches to find first: {count}{which}"]
    if plan.runs:
        lines += ["", *table(_rows(plan))]
        found = [str(case) for case in plan.folders if case not in plan.larger]
        if len(found) <= MOST_NAMES:
            lines += ["", "Cases, as --config cases=.. takes them:", *(f"  {n}" for n in found)]
    lines += ["", *call_text.left_out(plan), *call_text.processor(plan)]
    known = f"from {plan.cached} cached records" if plan.cached else "rough: none has a record yet"
    lines += [
        "",
        f"To do: {counted(len(plan.pending), 'run')}, about {duration(remaining(plan))} ({known})",
        *(_answered(plan) if plan.settings.budget else _at_most(plan)),
    ]
    files = [
        software.file.path.name
        + (" (then the driver compiles its kernels, up to 30 min, once)")
        * bool(gpu_environments.compiling(PROJECT, software.file.path, plan.capacity.gpus))
        + (" (it is damaged)" if software.marker.exists() else "")
        + ("" if software.file.is_hashed else " (without hashes)")
        for software in unbuilt(plan.needed.values())
        if software.file and software.marker
    ]
    if files:
        time_for_it = duration(ENVIRONMENT_SECONDS * len(files))
        lines += [f"Environments to build first, about {time_for_it}: {', '.join(files)}"]
    return "\n".join(lines)


def _until(plan: Plan) -> str:
    """Return what decides the number of repeats; "" if the suite fixes it."""
    repeats = plan.settings.suite.repeats
    if plan.settings.budget:
        return " (as the order of the frameworks needs)"
    return f" (as many as decide a margin of {repeats.margin:.1%})" if repeats.margin else ""


def _steps(plan: Plan) -> str:
    if not any(case.is_step for case in plan.cases):
        return ""
    warmup, timed = plan.settings.suite.steps.warmup, plan.settings.suite.steps.timed
    limit = f" to {warmup.at_most}" if warmup.at_most else ""
    filled = f" or {timed.seconds} s of" if timed.seconds else ""
    return f", each {warmup.at_least}{limit} warm-up and {timed.at_least}{filled} timed steps"


def _machine(plan: Plan) -> list[str]:
    """Return lines on devices and cores."""
    capacity = plan.capacity
    count = capacity.devices_per_node
    devices = counted(count, "GPU" if capacity.accelerator == "cuda" else "device")
    if capacity.cores_per_device:
        devices += f" of {counted(capacity.cores_per_device, 'core')}, no GPU"
    lines = [f"on {devices}", *_gpus(plan)]
    if plan.settings.side_by_side:
        lines += [f"side by side: up to {count} runs of one GPU, with --cores all"]
    return lines


def _gpus(plan: Plan) -> list[str]:
    """Return lines on the GPUs: kinds and driver, and what is not known of them."""
    capacity = plan.capacity
    if capacity.accelerator == "cpu":
        return []
    kinds = Counter(
        f"{gpu.kind}, driver {gpu.driver or 'unknown'}, compute capability "
        f"{gpu.capability or 'unknown'}"
        for gpu in capacity.gpus
    )
    lines = [f"{count} x {kind}" for kind, count in kinds.items()]
    room = local.shared_memory()
    if not plan.settings.cluster and room < SHARED and any(case.devices > 1 for case in plan.cases):
        lines.append(
            f"{local.SHARED} has {room >> 20} MiB: NCCL and loaders of several GPUs may fail below "
            f"{SHARED >> 20} MiB (docker run --shm-size=8g, or --ipc=host)"
        )
    if plan.settings.cluster and not capacity.gpus:
        lines.append(
            "driver and compute capability are not known: cluster.gpu_driver and "
            "cluster.gpu_capability say them"
        )
    return lines


def left_as_they_are(plan: Plan) -> list[str]:
    """Return lines on runs that are done but may succeed with a higher limit or another attempt."""
    ended = Counter(run.status for run in plan.runs)
    return [
        f"{ended[name]} run(s) {FAILURES[name].phrase} and count as done; --config retry={name} "
        "repeats them"
        for name in FAILURES
        if ended[name] and name != "unsupported"
    ]


def other_machine_lines(plan: Plan) -> list[str]:
    """Return lines on records of other machines, which are ignored."""
    counted = Counter(str(run.machine) for run in plan.elsewhere)
    return [
        f"{count} record(s) are of another machine ({name}): ignored, measured again here "
        f"({plan.here}); use --config results=DIR for one folder per machine"
        for name, count in sorted(counted.items())
    ]


def most_pairs(plan: Plan) -> list[str]:
    """Return a line on the largest number of pairs of a gate; [] for another suite."""
    repeats = plan.settings.suite.repeats
    if repeats.margin is None:
        return []
    head = f"Gate with a margin of {repeats.margin:.1%}: "
    if repeats.at_most < FIRST_LOOK:
        return [f"{head}{repeats.at_most} pairs cannot decide; {FIRST_LOOK} or more are needed"]
    first = {run.case: run for run in plan.runs}
    most = duration(repeats.at_most * seconds_for(plan, first.values()))
    return [f"{head}{repeats.at_least} to {repeats.at_most} pairs of each case, at most {most}"]


def _at_most(plan: Plan) -> list[str]:
    if not plan.reserve:
        return []
    most = seconds_for(plan, [*plan.pending, *plan.reserve])
    runs = len(plan.pending) + len(plan.reserve)
    return [
        *most_pairs(plan),
        f"and at most {runs} runs, {duration(most)}, if all cases need them",
    ]


def _answered(plan: Plan) -> list[str]:
    """Return lines on what each of the next calls answers within its time budget."""
    left, around = costs.time_left(plan, 0.0)
    done = Counter(run.case for run in plan.runs if run.status)
    expected = budget.answers(costs.measured_cases(plan, {}, around), done)
    if not expected:
        return ["Each setting has the repeats of a first look; a further call adds more"]
    of_call, stages = max(1.0, left), dict[Case, int]()
    for case, stage in plan.stages.items():
        stages[case.setting] = min(stage, stages.get(case.setting, stage))
    calls: dict[int, dict[bool, list[str]]] = defaultdict(lambda: {False: [], True: []})
    for seconds, case, is_settled in expected:
        what = names.setting(case, plan.capacity.accelerator)
        if case in plan.larger:
            what = f"the leaders' order with {plan.settings.suite.batch_check} times the batch"
        elif plan.stages[case] > stages[case.setting]:
            what += ", compiled"
        calls[int(seconds // of_call) + 1][is_settled].append(what)
    lines = [f"What calls of {minutes(plan.settings.budget or 0.0)} answer, by these estimates:"]
    for number in range(1, min(MOST_CALLS, max(calls)) + 1):
        first, settled = (list(dict.fromkeys(some)) for some in calls[number].values())
        texts = [f"first figures of {'; '.join(first)}"] if first else []
        texts += [f"who is fastest in {'; '.join(settled)}"] if settled else []
        lines.append(f"  call {number}: {' - then '.join(texts) or 'further repeats'}")
    total = expected[-1].seconds
    return [*lines, f"  all of it: {counted(max(calls), 'call')}, {duration(total)} of measuring"]


# ---- table of cases: a row per framework and workload ------------------------------------------

#: Most values of an axis that are listed; longer lists show first, last and their number.
_MOST = 4
_HEADER = ["framework", "workload", "settings", "cases", "runs", "s/run", "state", "time to go"]


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines with columns padded to their widest cell; empty columns are left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _rows(plan: Plan) -> list[list[str]]:
    """Return header and rows of a table of all runs, in the order of the cases."""
    grouped: dict[tuple[str, str], list[Job]] = defaultdict(list)
    order = {case: number for number, case in enumerate(plan.folders)}
    for run in sorted(plan.runs, key=lambda run: order[run.case]):
        grouped[run.case.framework, run.case.model].append(run)
    measurements = plan.settings.suite.measurements
    named = {kind: measurement.chosen for kind, measurement in measurements.items()}
    return [_HEADER, *([*names, *_row(runs, named)] for names, runs in grouped.items())]


def _row(runs: Sequence[Job], named: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the cells of runs of a workload. ``named``: the parameters that the suite sets, by
    benchmark."""
    cases = list(dict.fromkeys(run.case for run in runs))
    columns: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        default = dict(case.parameters).keys() - named.get(case.mode, frozenset())
        for name, text in case.value_texts().items():
            if name not in default:
                columns[name].append(text)
    values = [list(dict.fromkeys(filter(None, column))) for column in columns.values()]
    seconds = sorted(run.seconds for run in runs)
    low, high = f"{seconds[0]:.0f}", f"{seconds[-1]:.0f}"
    statuses = Counter(run.status or "to do" for run in runs)
    to_go = sum(run.seconds for run in runs if not run.status)
    return [
        "; ".join(_listed(sorted(value, key=_number)) for value in values if value),
        str(len(cases)),
        str(len(runs)),
        low if low == high else f"{low} to {high}",
        ", ".join(f"{count} {status}" for status, count in statuses.items()),
        duration(to_go) if to_go else "",
    ]


def _number(value: str) -> int:
    """Return the number at the end of a text, by which it is sorted; 0 without one."""
    digits = value.rpartition(" ")[2]
    return int(digits) if digits.isdecimal() else 0


def _listed(values: Sequence[str]) -> str:
    """Return values as a list like ``batch 2, 4``; a common first word appears once."""
    first, _, _ = values[0].partition(" ")
    if len(values) > 1 and all(value.startswith(f"{first} ") for value in values):
        return f"{first} {_listed([value.removeprefix(f'{first} ') for value in values])}"
    if len(values) > _MOST:
        return f"{values[0]} .. {values[-1]} ({len(values)})"
    return ", ".join(values)
