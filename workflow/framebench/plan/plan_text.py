"""Text of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from core.text import duration

from ..config.repeats import FIRST_LOOK
from ..environments.soundness import is_sound
from . import budget, estimates, groups, limits, planning
from .planning import Plan, remaining, seconds_for

#: Largest number of cases whose names are listed.
MOST_NAMES = 12


def describe(plan: Plan, description: str = "") -> str:
    """Return the plan as text: runs of each workload, excluded cases with reasons, and time."""
    suite, capacity = plan.settings.suite, plan.capacity
    cores = f" of {capacity.cores_per_device} core(s)" if capacity.cores_per_device else ""
    cluster = plan.settings.cluster
    kind = f", nodes of kind {cluster.node_kind}" if cluster and cluster.node_kind else ""
    limit = f" to {suite.warmup_limit}" if suite.warmup_limit else ""
    warmup = f"{suite.warmup_steps}{limit}"
    width, margin = suite.repeats.width, suite.repeats.margin
    until = f" (as many as make the interval {width:.1%} wide)" if width else ""
    until += f" (as many as decide a margin of {margin:.1%})" if margin else ""
    if plan.settings.budget:
        until = " (as the order of the frameworks needs)"
    repeats = f"{suite.repeats} repeats{until}"
    cases = len(plan.folders) - len(plan.larger)
    filled = f" or {suite.timed_seconds:g} s of" if suite.timed_seconds else ""
    steps = f", each {warmup} warm-up and {suite.timed_steps}{filled} timed steps"
    if not any(case.is_step for case in plan.cases):
        steps = ""
    lines = [
        f"Suite {suite.name} ({suite.path})" + (f": {description}" if description else ""),
        f"  {cases} cases x {repeats} = {len(plan.runs)} runs{steps}",
        f"  on {capacity.accelerator}: {capacity.devices_per_node} device(s){cores}{kind}",
        *(
            [f"  at most {capacity.cores} core(s), because of {capacity.limited}"]
            if capacity.limited
            else []
        ),
        *(f"  {line}" for line in _gpus(plan)),
        *_side_by_side(plan),
        *(f"  {line}" for line in [*of_other_machines(plan), *left_as_they_are(plan)]),
        *_provided(plan),
        *_to_find(plan),
    ]
    if plan.runs:
        named = {kind: measurement.chosen for kind, measurement in suite.measurements.items()}
        lines += ["", *groups.table(groups.of_runs(plan.runs, plan.folders, named))]
        lines += _names(plan)
    if plan.left_out:
        lines += ["", f"Left out: {len(plan.left_out)} cases"]
        lines += groups.table(groups.of_left_out(plan.left_out))
    lines += [
        "",
        f"To do: {len(plan.pending)} runs, about {duration(remaining(plan))} "
        + (
            f"(from {plan.cached} cached records)"
            if plan.cached
            else "(rough estimate: none of these runs has a record here yet)"
        ),
        *_over_limit(plan),
        *(_reached(plan) if plan.settings.budget else _at_most(plan)),
    ]
    missing = [
        software.file.path.name
        + (" (it is damaged)" if software.marker.exists() else "")
        + ("" if software.file.is_hashed else " (without hashes)")
        for software in plan.needed.values()
        if software.file and software.marker and not is_sound(software.marker)
    ]
    if missing:
        time_for_it = duration(estimates.ENVIRONMENT_SECONDS * len(missing))
        lines += [f"Environments to build first, roughly {time_for_it}: {', '.join(missing)}"]
        if models := plan.settings.own_models:
            sources = " and ".join(own_model.source for own_model in models)
            lines += [f"Imports of {sources} are checked once it is built"]
    return "\n".join(lines)


def _gpus(plan: Plan) -> list[str]:
    """Return lines on the GPUs: kinds and driver, hidden ones, and what is not known of them."""
    capacity = plan.capacity
    if capacity.accelerator == "cpu":
        return []
    kinds = Counter(
        f"{gpu.name}, driver {gpu.driver or 'unknown'}, compute capability "
        f"{gpu.capability or 'unknown'}"
        for gpu in capacity.gpus
    )
    lines = [f"{count} x {kind}" for kind, count in kinds.items()]
    if capacity.hidden:
        lines.append(f"{capacity.hidden} more GPU(s) are hidden by CUDA_VISIBLE_DEVICES")
    if plan.settings.cluster and not capacity.gpus:
        lines.append(
            "driver and compute capability are not known: cluster.gpu_driver and "
            "cluster.gpu_capability say them"
        )
    return lines


def left_as_they_are(plan: Plan) -> list[str]:
    """Return lines on runs that are done but may succeed with a higher limit or another attempt."""
    ended = Counter(run.status for run in plan.runs)
    next_words = {
        "timeout": ("timed out", _time_limits(plan)),
        "oom": (
            "ran out of memory",
            f" (memory_limit is {plan.settings.memory_limit or 'auto'} now)",
        ),
        "failed": ("failed", ""),
        "not_converged": ("did not converge", ""),
    }
    return [
        f"{ended[status]} run(s) {what} and count as done; --config retry={status} repeats them"
        + limit
        for status, (what, limit) in next_words.items()
        if ended[status]
    ]


def _time_limits(plan: Plan) -> str:
    """Return the past and present time limits of runs that timed out."""
    stopped = [run for run in plan.runs if run.status == "timeout"]
    then = _range({run.limit for run in stopped if run.limit})
    now = _range({limits.run_limit(plan.settings, plan.minutes.get(r.case)) for r in stopped})
    return f" (time_limit was {then} and is {now} now)" if then else f" (time_limit is {now} now)"


def _over_limit(plan: Plan) -> list[str]:
    """Return a line on pending runs that are expected to be ended by their time limit."""
    settings = plan.settings
    long = [
        run.seconds
        for run in plan.pending
        if run.seconds > limits.run_limit(settings, plan.minutes.get(run.case))
    ]
    if not long:
        return []
    return [
        f"{len(long)} of them may take longer than time_limit, up to {max(long):.0f} s by these "
        "estimates: --config time_limit=.. allows it"
    ]


def _range(seconds: Collection[float]) -> str:
    """Format a range of seconds, like ``30 to 1800 s``; "" without values."""
    if not seconds:
        return ""
    low, high = f"{min(seconds):g}", f"{max(seconds):g}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def left_out(plan: Plan) -> list[str]:
    """Return a line for each reason for which cases are excluded."""
    _, *rows = groups.of_left_out(plan.left_out)
    return [f"Left out: {cases} case(s) ({which}): {why}" for cases, which, why in rows]


def of_other_machines(plan: Plan) -> list[str]:
    """Return lines on records of other machines, which are ignored."""
    counted = Counter(str(run.machine) for run in plan.elsewhere)
    return [
        f"{count} record(s) are of another machine ({name}): ignored, measured again here "
        f"({plan.here}); use --config results=DIR for one folder per machine"
        for name, count in sorted(counted.items())
    ]


def _side_by_side(plan: Plan) -> list[str]:
    """Return a line on runs side by side, if several may run at a time."""
    if not plan.settings.side_by_side:
        return []
    count = plan.capacity.devices_per_node
    return [f"  side by side: up to {count} runs of one GPU, with --cores all"]


def _to_find(plan: Plan) -> list[str]:
    """Return lines on batch searches, with the number of pending ones."""
    if not plan.searches:
        return []
    to_do = [seconds for search, seconds in plan.searches if not search.result]
    then = f", roughly {duration(sum(to_do))}, and then the runs with them" if to_do else ""
    return [
        "",
        f"Largest batches to find first: {len(to_do)} of {len(plan.searches)}{then}",
        *groups.table(
            [
                ["case", "largest batch", "s"],
                *(
                    [str(search.case), search.state, f"{seconds:.0f}"]
                    for search, seconds in plan.searches
                ),
            ]
        ),
    ]


def _names(plan: Plan) -> list[str]:
    """Return lines with the case names that the key ``cases`` takes, if they are few."""
    found = [str(case) for case in plan.folders if case not in plan.larger]
    if len(found) > MOST_NAMES:
        return [
            f"  Plans of at most {MOST_NAMES} cases list their names for --config cases=.., for "
            "example with --config frameworks=NAME"
        ]
    return ["", "Cases, as --config cases=.. takes them:", *(f"  {name}" for name in found)]


def most_pairs(plan: Plan) -> list[str]:
    """Return a line on the largest number of pairs of a gate; [] for another suite."""
    repeats = plan.settings.suite.repeats
    if repeats.margin is None:
        return []
    head = f"Gate with a margin of {repeats.margin:.1%}: "
    if repeats.at_most < FIRST_LOOK:
        return [f"{head}{repeats.at_most} pairs decide nothing, it takes {FIRST_LOOK} or more"]
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


def _reached(plan: Plan) -> list[str]:
    """Return lines on the stages of a suite that a call reaches within its time budget."""
    lines = [f"Time budget of a call: {duration(plan.settings.budget or 0)}. By these estimates:"]
    for number, stage in enumerate(budget.reach(planning.costs(plan)), 1):
        order = f"; the order of the two fastest: {duration(stage.order)}" if stage.order else ""
        end = "" if stage.left >= 0 else "; the budget ends before"
        lines.append(
            f"  stage {number}: {stage.cases} cases at {stage.settings} settings, once each and "
            f"checked: {duration(stage.once)}{order}{end}"
        )
    return [*lines, "A further call goes on where this one stops"]


def _provided(plan: Plan) -> list[str]:
    """Return lines on environments that the user provides."""
    provided = sorted(plan.software.items())
    return [f"  {name}: {software}" for name, software in provided if name and not software.file]
