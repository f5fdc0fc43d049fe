"""Text of a plan, and lines that a call prints about it: cases left out, its start, the next
calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from core import precisions
from core.case import Case
from core.gpus import VISIBLE, Gpu
from core.text import counted, duration, minutes

from ..cases import names
from ..cases.fitting import LeftOut
from ..config import catalog
from ..environments.building import is_sound
from ..machine import local
from ..records.sidecars import TOO_SLOW
from ..statistics.verdicts import FIRST_LOOK
from . import costs
from .budget import answers
from .estimates import environment_seconds
from .job import NOUNS, Job, count_of
from .plan import Plan

#: Bytes of shared memory below which several GPUs may fail.
SHARED = 2**30

#: Most cases to list by name, and most calls whose expected answers are listed.
MOST_NAMES, MOST_CALLS = 12, 3


def describe(plan: Plan) -> str:
    """Return the plan as text: runs of each workload, excluded cases with reasons, and time."""
    suite = plan.settings.suite
    budget, runs = plan.settings.budget, counted(len(plan.runs), "run")
    lines = [
        f"Suite {suite.name} ({suite.path})",
        f"  {counted(len(plan.folders) - len(plan.larger), 'case')} x {suite.repeats} repeats"
        + (f" within {minutes(budget)}; now {runs}" if budget else f" = {runs}"),
        *(f"  {line}" for line in [*_machine(plan), *other_machine_lines(plan)]),
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
    known = f"from {plan.cached} cached records" if plan.cached else "rough: none has a record yet"
    pending = (
        f"{counted(len(plan.pending), 'run')}, about {duration(plan.seconds_for(plan.pending))}"
    )
    lines += ["", *left_out(plan), *processor(plan), "", f"To do: {pending} ({known})"]
    lines += [*(_answered(plan) if budget else ()), *most_pairs(plan)]
    if plan.reserve and not budget:
        all_runs = [*plan.pending, *plan.reserve]
        most = duration(plan.seconds_for(all_runs))
        lines += [f"and at most {len(all_runs)} runs, {most}, if all cases need them"]
    if to_build := _to_build(plan):
        time_for_it = duration(sum(to_build.values()))
        lines += [f"Environments to build first, about {time_for_it}: {', '.join(to_build)}"]
    return "\n".join(lines)


def _to_build(plan: Plan) -> dict[str, float]:
    """Return the environments that are built first, in words, with the expected seconds."""
    found = {}
    for software in plan.needed.values():
        file, marker = software.file, software.marker
        if file and marker and not is_sound(marker):
            text = file.path.name
            if catalog.compiling(file.path, plan.capacity.gpus):
                text += " (then the driver compiles its kernels, up to 30 min, once)"
            text += " (it is damaged)" * marker.exists()
            text += "" if file.is_hashed else " (without hashes)"
            found[text] = environment_seconds(file.path, plan.capacity)
    return found


def _machine(plan: Plan) -> list[str]:
    """Return lines on devices, cores and GPUs."""
    capacity = plan.capacity
    count = capacity.devices_per_node
    devices = counted(count, "GPU" if capacity.accelerator == "cuda" else "device")
    if capacity.cores_per_device:
        devices += f" of {counted(capacity.cores_per_device, 'core')}, no GPU"
    lines = [f"on {devices}"]
    kinds = Counter(
        f"{gpu.kind}, driver {gpu.driver or 'unknown'}, compute capability "
        f"{gpu.capability or 'unknown'}"
        for gpu in capacity.gpus
    )
    lines += [f"{number} x {kind}" for kind, number in kinds.items()]
    if len(kinds) > 1:
        lines.append(
            "GPUs of different kinds: batches fit the smallest, runs on one GPU use the first, "
            f"runs on several mix them ({VISIBLE} chooses)"
        )
    lines += _state(capacity.gpus)
    is_here = capacity.accelerator == "cuda" and not plan.settings.cluster
    room = local.shared_memory()
    if is_here and room < SHARED and any(case.devices > 1 for case in plan.cases):
        lines.append(
            f"{local.SHARED} has {room >> 20} MiB: NCCL and loaders of several GPUs may fail below "
            f"{SHARED >> 20} MiB (docker run --shm-size=8g, or --ipc=host)"
        )
    if most := capacity.machine.most_cores:
        lines += [f"at most {counted(most, 'core')}, by --cores or by a CPU quota"]
    if plan.settings.side_by_side:
        lines += [f"side by side: up to {count} runs of one GPU, with --cores all"]
    return lines


def _state(gpus: Sequence[Gpu]) -> list[str]:
    """Return a line for each state of GPUs that fails runs or makes them slower."""
    states, lines = [dict(gpu.state) for gpu in gpus], []
    if any(state.get("persistence_mode") == "Disabled" for state in states):
        lines.append("persistence mode is off: each run starts the driver anew (nvidia-smi -pm 1)")
    if any(state.get("compute_mode", "").startswith("Exclusive") for state in states):
        lines.append(
            "compute mode is exclusive: runs and checks fail while another process uses the GPU "
            "(nvidia-smi -c DEFAULT)"
        )
    links = {
        tuple(state.get(f"pcie.link.width.{key}", "") for key in ("current", "max"))
        for state in states
    }
    lines += [
        f"PCIe has {now} of {most} lanes: copies to and from that GPU are slower (look at its slot)"
        for now, most in sorted(links)
        if now.isdigit() and most.isdigit() and int(now) < int(most)
    ]
    return lines


def other_machine_lines(plan: Plan) -> list[str]:
    """Return lines on records of other machines, which are ignored."""
    counted = Counter(str(run.machine) for run in plan.elsewhere)
    return [
        f"{count} record(s) are of another machine ({name}): ignored, measured again here "
        f"({plan.here}); use --config results=DIR for one folder per machine"
        for name, count in sorted(counted.items())
    ]


def total_lines(plan: Plan, jobs: Sequence[Job], reserve: Iterable[Job] = ()) -> list[str]:
    """Return the last lines of a plan: what its jobs request of a cluster, and how long they take.
    ``reserve``: jobs that may follow."""
    lines = []
    if jobs and plan.settings.cluster:
        asked = [job for job in (*jobs, *reserve) if job.nodes]
        most = plan.settings.cluster.most_node_hours
        ceiling = f" (most_node_hours: {most:g})" if most else ""
        hours = f"at most {plan.node_hours(asked):.2f} node hours in all{ceiling}"
        lines = [f"Requested of the cluster: {counted(len(asked), 'job')}, {hours}"]
    return [*lines, f"In all about {duration(plan.total_seconds(jobs))}"] if jobs else []


def most_pairs(plan: Plan) -> list[str]:
    """Return a line on the largest number of pairs of a gate; [] for another suite."""
    repeats = plan.settings.suite.repeats
    if repeats.margin is None:
        return []
    head = f"Gate with a margin of {repeats.margin:.1%}: "
    if repeats.at_most < FIRST_LOOK:
        return [f"{head}{repeats.at_most} pairs cannot decide; {FIRST_LOOK} or more are needed"]
    first = {run.case: run for run in plan.runs}
    most = duration(repeats.at_most * plan.seconds_for(first.values()))
    return [f"{head}{repeats.at_least} to {repeats.at_most} pairs of each case, at most {most}"]


def _answered(plan: Plan) -> list[str]:
    """Return lines on what each of the next calls answers within its time budget."""
    left, around = costs.time_left(plan, 0.0)
    done = Counter(run.case for run in plan.runs if run.status)
    expected = answers(costs.measured_cases(plan, {}, around), done)
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
            what += ", without a compiler" if case.compiler == "none" else ", compiled"
        calls[int(seconds // of_call) + 1][is_settled].append(what)
    lines = [f"What calls of {minutes(plan.settings.budget or 0.0)} answer, by these estimates:"]
    for number in range(1, min(MOST_CALLS, max(calls)) + 1):
        first, settled = (list(dict.fromkeys(some)) for some in calls[number].values())
        texts = [f"first figures of {'; '.join(first)}"] if first else []
        texts += [f"who is fastest in {'; '.join(settled)}"] if settled else []
        lines.append(f"  call {number}: {' - then '.join(texts) or 'further repeats'}")
    total = expected[-1].seconds
    return [*lines, f"  all of it: {counted(max(calls), 'call')}, {duration(total)} of measuring"]


# ---- lines of a call -----------------------------------------------------------------------------


def left_out(plan: Plan) -> list[str]:
    """Return a line for each reason for which cases are left out; frameworks that lack a precision
    share one, which is omitted if :func:`processor` has a line on this precision."""
    reported = _multiplied(plan)
    grouped: dict[str, list[Case]] = defaultdict(list)
    for out in plan.left_out:
        is_lacking = _lacks_precision(out)
        if not (is_lacking and out.case.precision in reported):
            grouped[f"no {out.case.precision}" if is_lacking else out.reason].append(out.case)
    lines = []
    for reason, cases in grouped.items():
        frameworks, what = names.frameworks(cases), names.workloads(cases)
        which = f"{names.listed(frameworks)} ({what})" if frameworks else what
        why, _, remedy = reason.partition("; to ")
        if why.startswith(TOO_SLOW):
            lines.append(f"{_capital(why)} here: {which}. To {remedy}")
        else:
            lines.append(f"Left out: {counted(len(cases), 'case')}, {which}: {reason}")
    return lines


def processor(plan: Plan) -> list[str]:
    """Return a line for each reduced precision that this processor has instructions for, with the
    frameworks that are measured in it."""
    lines = []
    for name, (instructions, cases) in _multiplied(plan).items():
        known, frameworks = precisions.known()[name], names.frameworks(cases)
        left = [out for out in plan.left_out if out.case.precision == name]
        verb = "is" if len(frameworks) == 1 else "are"
        lines.append(
            f"This processor multiplies {known.cpu_dtype} ({instructions}): after "
            f"{known.baseline}, {names.listed(frameworks)} {verb}"
            f" measured in {names.in_words(name)} precision, too"
            + "; the others have none on CPUs"
            * any(_lacks_precision(out) for out in left)
        )
    return lines


def _multiplied(plan: Plan) -> dict[str, tuple[str, list[Case]]]:
    """Return the reduced precisions that the processor has instructions for: the instructions in
    words, and the cases."""
    found = {}
    sets = plan.capacity.instruction_sets if plan.capacity.accelerator == "cpu" else ()
    for name, precision in precisions.known().items():
        cases = [case for case in plan.folders if case.precision == name and case.is_step]
        own = [known for known in precision.instructions if known in sets]
        if precision.baseline and cases and own:
            found[name] = (names.listed(text.partition("_")[0].upper() for text in own), cases)
    return found


def _lacks_precision(out: LeftOut) -> bool:
    return f" has no {out.case.precision}" in out.reason


def opening(plan: Plan, counts: Mapping[str, int], left: float) -> str:
    """Return the first lines of a call that has something to do. ``counts``: counts of its jobs by
    kind; ``left``: expected seconds of all."""
    budget = plan.settings.budget
    cases = [run.case for run in plan.pending] + [search.case for search in plan.unsearched]
    if budget is None or not cases:
        text = f"measuring {names.workloads(cases)}: " if cases else ""
        jobs = (count_of(counts[kind], kind) for kind in NOUNS if counts.get(kind))
        text += f"{', '.join(jobs)}, about {duration(left)}"
    else:
        of_nodes = " of node time" if plan.settings.cluster else ""
        cases = [case for case in plan.folders if case not in plan.larger]
        who = counted(len(names.frameworks(cases)), "framework")
        text = f"measuring for at most {minutes(budget)}{of_nodes}: {names.workloads(cases)}, {who}"
    if to_build := counts.get("environment"):
        seconds = sum(_to_build(plan).values())
        first = f"Building {count_of(to_build, 'environment')} first "
        text = f"{first}(about {minutes(seconds)}, once). Then {text}."
    return "\n".join([_capital(text), *processor(plan)])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def ahead(plan: Plan, runs: Sequence[Job]) -> list[str]:
    """Return how many leads are settled before a round, and what its ``runs`` are, such as
    ``repeats of PyTorch and JAX (2 of 7)``."""
    from ..statistics import repeated_intervals  # imported here: most plans need no numpy

    settled, leads = plan.leads
    head = [f"leads settled: {settled} of {leads}"] * bool(leads)
    if not runs:
        return [*head, "next: tables and report"]
    who = names.listed(names.frameworks(run.case for run in runs))
    first, last = (limit(run.repeat for run in runs) for limit in (min, max))
    if last == 1:
        return [*head, f"next: first runs of {who}"]
    looks = max(last, repeated_intervals.FIRST_LOOK)
    return [*head, f"next: repeats of {who} ({first} of {looks})"]


# ---- table of cases: a row per framework and workload ------------------------------------------


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
    header = ["framework", "workload", "settings", "cases", "runs", "s/run", "state", "time to go"]
    return [header, *([*names, *_row(runs)] for names, runs in grouped.items())]


def _row(runs: Sequence[Job]) -> list[str]:
    """Return the cells of a workload's row. Parameters are shown only if they differ."""
    cases = list(dict.fromkeys(run.case for run in runs))
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    for case in cases:
        for name, text in case.value_texts().items():
            columns[name][text] = None
    parameters = {name for case in cases for name, _ in case.parameters}
    values = [
        ", ".join(filter(None, texts))
        for name, texts in columns.items()
        if len(texts) > 1 or name not in parameters
    ]
    seconds = sorted(run.seconds for run in runs)
    low, high = f"{seconds[0]:.0f}", f"{seconds[-1]:.0f}"
    statuses = Counter(run.status or "to do" for run in runs)
    to_go = sum(run.seconds for run in runs if not run.status)
    return [
        "; ".join(filter(None, values)),
        str(len(cases)),
        str(len(runs)),
        low if low == high else f"{low} to {high}",
        ", ".join(f"{count} {status}" for status, count in statuses.items()),
        duration(to_go) if to_go else "",
    ]
