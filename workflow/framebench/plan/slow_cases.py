"""Cases that are so slow that a time budget is not spent on them."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable

from core.case import Case
from core.text import minutes

from ..cases.fitting import Capacity
from ..config.catalog import Catalog
from ..config.settings import Settings
from ..records.sidecars.expected import TOO_SLOW
from . import estimates

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
        seconds = estimates.of_steps(case, steps, capacity, catalog)
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
