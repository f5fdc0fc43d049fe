"""Lines of a call on its plan: what is left out, what it begins with, and what comes next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from core import precisions
from core.case import Case
from core.text import counted, duration, minutes

from ..cases import names
from ..cases.fitting import LeftOut
from ..environments.software import unbuilt
from ..records.expected import TOO_SLOW
from .estimates import ENVIRONMENT_SECONDS
from .job import Job
from .plan import Plan


def left_out(plan: Plan) -> list[str]:
    """Return a line for each reason to exclude cases, except reasons in the line on the
    processor."""
    said = _multiplied(plan)
    count = len(names.frameworks([*plan.folders, *(out.case for out in plan.left_out)]))
    grouped: dict[str, list[Case]] = defaultdict(list)
    for out in plan.left_out:
        if not (out.case.precision in said and _lacks_precision(out)):
            grouped[out.reason].append(out.case)
    lines = []
    for reason, cases in grouped.items():
        frameworks, what = names.frameworks(cases), names.workloads(cases)
        is_all = len(frameworks) == count > 1
        who = "all frameworks" if is_all else names.listed(frameworks)
        which = f"{who} ({what})" if frameworks else what
        why, _, remedy = reason.partition("; to ")
        if why.startswith(TOO_SLOW):
            lines.append(f"{_capital(why)} here: {which}. To {remedy}")
        else:
            lines.append(f"Left out: {counted(len(cases), 'case')}, {which}: {reason}")
    return lines


def opening(plan: Plan, environments: int, counts: str, left: float) -> list[str]:
    """Return the first lines of a call that has something to do.

    ``environments``: number to build; ``counts``: other jobs as text; ``left``: expected seconds of
    all jobs."""
    cases = [run.case for run in plan.pending] + [search.case for search in plan.unsearched]
    if not cases:
        return [f"To do: {counts}, about {duration(left)}"]
    if plan.settings.budget is not None:
        cases = [case for case in plan.folders if case not in plan.larger]
    frameworks = names.frameworks(cases)
    who = frameworks[0] if len(frameworks) == 1 else counted(len(frameworks), "framework")
    what = names.workloads(cases) + (f", {who}" if frameworks else "")
    budget = plan.settings.budget
    if budget is None:
        text = f"measuring {what}: {counts}, about {duration(left)}"
    else:
        of_nodes = " of node time" if plan.settings.cluster else ""
        text = f"measuring for at most {minutes(budget)}{of_nodes}: {what}"
    if environments:
        seconds = ENVIRONMENT_SECONDS * len(unbuilt(plan.needed.values()))
        first = f"Building {counted(environments, 'environment')} first "
        text = f"{first}(about {minutes(seconds)}, once). Then {text}."
    return [_capital(text), *processor(plan)]


def processor(plan: Plan) -> list[str]:
    """Return a line for each precision that this processor multiplies besides the baseline: which
    frameworks are measured in it."""
    lines = []
    for name, (instructions, cases) in _multiplied(plan).items():
        known, frameworks = precisions.known()[name], names.frameworks(cases)
        lacking = any(_lacks_precision(out) for out in plan.left_out if out.case.precision == name)
        verb = "is" if len(frameworks) == 1 else "are"
        lines.append(
            f"This processor multiplies {known.cpu_dtype} ({instructions}): after "
            f"{known.baseline}, {names.listed(frameworks)} {verb}"
            f" measured in {names.in_words(name)} precision, too"
            + "; the others have none on CPUs"
            * lacking
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def ahead(plan: Plan, runs: Sequence[Job]) -> list[str]:
    """Return how many leads are settled before a round, with a description of its ``runs``."""
    settled, leads = plan.leads
    head = [f"leads settled: {settled} of {leads}"] * bool(leads)
    return [*head, f"next: {_next_runs(plan, runs)}"]


def _next_runs(plan: Plan, runs: Sequence[Job]) -> str:
    """Return a description of a round's runs, such as ``repeats of PyTorch and JAX (2 of 7)``."""
    if not runs:
        return "tables and report"
    cases = [run.case for run in runs]
    frameworks = names.frameworks(cases)
    if any(case in plan.larger for case in cases):
        times = plan.settings.suite.batch_check
        return f"{names.listed(frameworks)} with {times} times the batch"
    from ..statistics.repeated_intervals import FIRST_LOOK

    first, last = min(run.repeat for run in runs), max(run.repeat for run in runs)
    if last == 1:
        return f"first runs of {names.workloads(cases)} ({counted(len(frameworks), 'framework')})"
    return f"repeats of {names.listed(frameworks)} ({first} of {max(last, FIRST_LOOK)})"
