"""Expected seconds of cases within a time budget, and cases that are too slow for it."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from core import axes, precisions
from core.case import Case
from core.text import minutes

from ..cases.fitting import Capacity
from ..config.catalog import Catalog
from ..config.settings import Settings
from ..records.run import Run
from ..records.sidecars import TOO_SLOW
from . import estimates
from .budget import MeasuredCase
from .estimates import start_seconds
from .plan import Plan

#: Seconds around a run, for its interpreter, Snakemake and its share of pages; and seconds to make
#: the page (tables and report) before a round.
AROUND, PAGE_SECONDS = 1.5, 3.0
#: Time after the last round as a multiple of PAGE_SECONDS: a page, then tables and report by
#: several rules.
CLOSING = 4.0
#: Fraction of a time budget that the steps of a run may take, and factor by which they may be
#: slower than the competitors' steps. Cases beyond both are left out.
SHARE, TIMES = 0.05, 5.0


def too_slow(
    cases: Iterable[Case], settings: Settings, capacity: Capacity, catalog: Catalog
) -> dict[Case, str]:
    """Return why cases are left out of a time budget. They cannot be the fastest at their setting,
    and a run of theirs would take time that can settle the order of others. The estimates ignore
    records, so that all calls decide alike."""
    if settings.budget is None:
        return {}
    steps = settings.suite.steps.warmup.at_least + settings.suite.steps.timed.at_least
    at_setting: dict[Case, dict[Case, float]] = defaultdict(dict)
    for case in cases:
        seconds = estimates.step_seconds(case, steps, capacity, catalog)
        at_setting[case.setting][case] = seconds
    slow = {
        case: seconds
        for known in at_setting.values()
        for case, seconds in known.items()
        if seconds > max(SHARE * settings.budget, TIMES * statistics.median(known.values()))
    }
    needed: dict[str, float] = defaultdict(float)
    for case, seconds in slow.items():
        needed[case.framework] = max(needed[case.framework], seconds / SHARE)
    return {
        case: f"{TOO_SLOW}{minutes(settings.budget)}; to include it: "
        f"--config time_budget={math.ceil(needed[case.framework])}"
        for case in slow
    }


def measured_cases(
    plan: Plan, runs: Mapping[Case, Sequence[Run]], around: float
) -> list[MeasuredCase]:
    """Return all cases of a plan with a time budget, with their ``runs`` so far. ``around``:
    seconds around a run, see :func:`time_left`."""

    # cases with larger batches share these checks
    def order(case: Case) -> tuple[int, bool]:
        return plan.stages[case], precisions.baseline(case.precision) is not None

    own = sorted((case for case in plan.stages if case not in plan.larger), key=order)
    checks = _check_seconds(own, {model.name for model in plan.settings.own_models}, plan.capacity)
    return [
        MeasuredCase(
            case, stage, plan.seconds[case] + around, checks.get(case, 0.0) * plan.slower,
            runs.get(case, ()), plan.larger.get(case),
        )
        for case, stage in plan.stages.items()
    ]  # fmt: skip


def time_left(plan: Plan, spent: float) -> tuple[float, float]:
    """Return the seconds left of a plan's time budget, without those to close the call, and the
    seconds around a run. ``spent``: seconds of the budget already used."""
    left = (plan.settings.budget or 0.0) - spent
    if plan.settings.cluster:  # node time, without the time between jobs
        return left, 0.0
    slowness = estimates.slowness(plan.capacity)
    return left - CLOSING * PAGE_SECONDS * slowness, AROUND * slowness


def _check_seconds(
    cases: Sequence[Case], own_models: Collection[str], capacity: Capacity
) -> dict[Case, float]:
    """Return the seconds of checks that come with the first repeat of each case.

    ``cases``: in the order of their first repeats. They share the first start of their framework
    and, on GPUs, its peak benchmarks. Each verification is paid for once, by the first case that
    needs it: the verification in the precision of the case, and the one in its baseline, which a
    user's own model does not have."""
    of_framework = Counter(case.framework for case in cases)
    in_precision = Counter((case.framework, case.precision) for case in cases)
    verified: set[Case] = set()
    results = {}
    for case in cases:
        baseline = precisions.baseline(case.precision)
        names = [case.precision, *([baseline] if baseline and case.model not in own_models else [])]
        needed = {_verification(case._replace(precision=name)) for name in names} - verified
        verified |= needed
        start = start_seconds(case.framework, case.mode, case.compiler, capacity, is_small=True)
        imported = start_seconds(case.framework, "", "", capacity, is_small=True)
        if case.devices == 1:  # one process, which has imported the framework, makes all checks
            start -= imported
        seconds = (estimates.VERIFYING_SECONDS + start) * len(needed)
        # The framework is not in the disk cache yet, and the process of its checks starts, too.
        seconds += 2 * imported / of_framework[case.framework]
        if capacity.accelerator != "cpu":
            peak = estimates.peak_seconds(case.framework, capacity)
            seconds += peak / in_precision[case.framework, case.precision]
        results[case] = seconds
    return results


def _verification(case: Case) -> Case:
    """Return the key of cases with a common verification, see :func:`runs.checks.full_size`."""
    return case._replace(
        nodes=1,
        devices_per_node=2 if case.devices > 1 and case.mode == "train" else 1,
        batch_per_device=0,
        **{"input": axes.SYNTHETIC, **case.verified_apart()},
    )
