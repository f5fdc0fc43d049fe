"""How long runs will take: from their own records or, where there are none, a guess."""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from ..cases.matrix import Capacity, Case
from ..config.catalog import Catalog, forward_multiply_adds
from ..config.kinds import INDEPENDENT
from ..config.settings import Settings
from ..files.whole_files import write_whole
from ..records.run import Run
from . import batch_searches

#: Rough rates until something has been measured here: floating-point operations per second of
#: one core and of one GPU, seconds to start a run and to build an environment.
CORE_RATE, GPU_RATE, START_SECONDS, ENVIRONMENT_SECONDS = 5e10, 1e13, 10.0, 60.0

#: In the results: what the call that measures expects.
FILE = ".expected.json"


def tell(results: Path, seconds: Mapping[str, float]) -> None:
    """Leave the expected seconds of a run in each case's folder to the jobs of this call: what they
    allow a run is then what was asked of the scheduler for it, and none of them has to read the
    records of all others."""
    write_whole(results / FILE, json.dumps(dict(seconds)))


def told(results: Path) -> dict[str, float]:
    """What the call that submitted this job has left. Raises OSError where it has not."""
    found: dict[str, float] = json.loads((results / FILE).read_text())
    return found


def of_runs(
    folders: dict[Case, str],
    settings: Settings,
    place: Capacity,
    catalog: Catalog,
    latest: dict[str, Run],
    expected: Mapping[str, float],
) -> dict[Case, float]:
    """Expected seconds of a run of each case: what was told for its folder, else the median of its
    own records, else a guess from the model's operations, scaled by how such guesses fared for the
    cases that have records."""
    measured: dict[str, list[float]] = defaultdict(list)
    for origin, run in latest.items():
        measured[os.path.dirname(origin)].append(run.wall_seconds or 0.0)
    steps = settings.suite.warmup_steps + settings.suite.timed_steps
    guesses = {case: _guess(case, steps, place, catalog) for case in folders}
    known = {
        case: statistics.median(measured[folder])
        for case, folder in folders.items()
        if folder in measured
    }
    factor = statistics.median([known[c] / guesses[c] for c in known]) if known else 1.0
    return {
        case: expected.get(folder) or known.get(case, guesses[case] * factor)
        for case, folder in folders.items()
    }


def _guess(case: Case, steps: int, place: Capacity, catalog: Catalog) -> float:
    if not case.is_step and case.mode != INDEPENDENT:
        return START_SECONDS
    operations = 2 * forward_multiply_adds(catalog.models[case.model], case.sequence_length)
    if case.mode in ("train", INDEPENDENT):
        operations *= 3  # the backward pass costs about two forward passes
    rate = GPU_RATE if place.cores_per_device is None else CORE_RATE * place.cores_per_device
    # those that devices compute together are shared out among them
    shared = case.replicas / case.devices
    samples = int(case.batch_per_device) * case.accumulation * shared
    return START_SECONDS + steps * samples * operations / rate


def of_search(case: Case, settings: Settings, place: Capacity, catalog: Catalog) -> float:
    """Seconds of all runs of a search, which knows as little as this guess."""
    steps = batch_searches.WARMUP_STEPS + batch_searches.TIMED_STEPS
    tries = batch_searches.expected(case, settings.suite.largest_batch, catalog)
    return sum(_guess(one, steps, place, catalog) for one in tries)
