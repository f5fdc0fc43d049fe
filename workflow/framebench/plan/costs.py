"""Expected seconds of cases within a time budget, and cases that are too slow for it."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from core import inputs, precisions
from core.case import Case
from core.text import minutes

from ..cases.fitting import Capacity
from ..config.catalog import Catalog
from ..config.settings import Settings
from ..records.expected import TOO_SLOW
from . import estimates
from .budget import AROUND, CLOSING, PAGE_SECONDS, Costs, Spent

#: Part of a time budget that the steps of a run may take, and by how much they may be slower than
#: those of the competitors: cases beyond both are left out.
SHARE, TIMES = 0.05, 5.0


def too_slow(
    cases: Iterable[Case], settings: Settings, capacity: Capacity, catalog: Catalog
) -> dict[Case, str]:
    """Return why cases are left out of a time budget, for those that would take too much of it.

    They cannot be the fastest at their setting, and one run of them would take the time that
    settles the order of others. The estimates are those without records, so that all calls decide
    alike.
    """
    if settings.budget is None:
        return {}
    steps = settings.suite.warmup_steps + settings.suite.timed_steps
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


def costs(
    stages: Mapping[Case, int],
    seconds: Mapping[Case, float],
    settings: Settings,
    capacity: Capacity,
    larger: Mapping[Case, Case],
    spent: Spent,
) -> Costs:
    """Return the expected seconds of all cases, and those left of the time budget.

    ``stages``, ``larger``: as in :class:`Costs`; ``seconds``: of a run of each case; ``spent``: of
    the budget.
    """
    if settings.budget is None:  # nothing is divided
        return Costs(stages, seconds, {}, 0.0)
    own = [case for case in stages if case not in larger]  # others have the checks of these
    checks = dict.fromkeys(stages, 0.0)
    checks |= _check_seconds(own, {model.name for model in settings.own_models}, capacity)
    left = settings.budget - spent.seconds
    if settings.cluster:  # node time, without what happens between the jobs
        return Costs(stages, seconds, checks, left, 0.0, larger)
    slowness = estimates.slowness(capacity)
    around = AROUND * slowness if spent.around is None else spent.around
    page = PAGE_SECONDS * slowness if spent.page is None else spent.page
    return Costs(stages, seconds, checks, left - CLOSING * page, around, larger)


def _check_seconds(
    cases: Sequence[Case], own_models: Collection[str], capacity: Capacity
) -> dict[Case, float]:
    """Return the seconds of what the first repeat of each case brings along.

    Cases share the first start of their framework, and on GPUs its peak in their precision. Each
    verification is paid for once, by the first case that needs it: that in the precision of the
    case, and that in its baseline, which a user's own model does not have."""
    of_framework = Counter(case.framework for case in cases)
    in_precision = Counter((case.framework, case.precision) for case in cases)
    verified: set[Case] = set()
    results = {}
    for case in sorted(cases, key=lambda case: precisions.baseline(case.precision) is not None):
        baseline = precisions.baseline(case.precision)
        names = [case.precision, *([baseline] if baseline and case.model not in own_models else [])]
        needed = {_verification(case._replace(precision=name)) for name in names} - verified
        verified |= needed
        seconds = estimates.check_seconds(case, capacity) * len(needed)
        seconds += (
            estimates.first_start_seconds(case.framework, capacity) / of_framework[case.framework]
        )
        if capacity.accelerator != "cpu":
            peak = estimates.peak_seconds(case.framework, capacity)
            seconds += peak / in_precision[case.framework, case.precision]
        results[case] = seconds
    return results


def _verification(case: Case) -> Case:
    """Return what is the same for all cases that share a verification, see
    :func:`runs.verify.full_size`."""
    return case._replace(
        nodes=1,
        devices_per_node=2 if case.devices > 1 and case.mode == "train" else 1,
        batch_per_device=0,
        accumulation=min(case.accumulation, 2),
        input=inputs.SYNTHETIC,
    )
