"""How long runs will take: from their own records or, where there are none, a guess."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict

from ..cases.fitting import Capacity, skips
from ..cases.matrix import NONE, Case
from ..config.catalog import START_SECONDS, Catalog, facts_of, forward_multiply_adds
from ..config.kinds import INDEPENDENT
from ..config.settings import Settings
from ..config.suite import Suite
from ..records.run import Run
from . import amounts, batch_searches
from .amounts import Amounts, Wrong
from .tasks import Guess

#: Rough rates until something has been measured here: floating-point operations per second of
#: one core and of one GPU, and seconds to build an environment.
CORE_RATE, GPU_RATE, ENVIRONMENT_SECONDS = 6e10, 1e13, 60.0
#: By what a core without AVX-512 is slower at all of it: AMD Zen 3 against Intel Sapphire Rapids.
SLOWER = 2.4
#: By what an emulated precision is slower than fp32.
EMULATED = 15
#: About as many steps are computed to time their parts.
_SPLIT_STEPS = 2
#: Of a model that was made small, as much is to be traced and compiled: it has fewer layers.
_SMALL = 0.5
#: The first of a run without a framework, and what a run measures that counts no steps.
ALONE_SECONDS, MEASURING_SECONDS = 1.5, 5.0


def of_runs(
    folders: dict[Case, str],
    settings: Settings,
    place: Capacity,
    catalog: Catalog,
    latest: dict[str, Run],
) -> dict[Case, Guess]:
    """Estimate the seconds of a run of each case: the median of its own records, else a guess from
    framework and operations, scaled by how such guesses fared for the cases that have records. A
    run that its time limit ended would have taken longer than it did: twice that is expected."""
    measured: dict[str, list[float]] = defaultdict(list)
    for origin, run in latest.items():
        if run.wall_seconds:
            times = 2 if run.status == "timeout" else 1
            measured[os.path.dirname(origin)].append(times * run.wall_seconds)
    steps = settings.suite.warmup_steps + settings.suite.timed_steps
    learned = amounts.of_cases(folders, settings, catalog)
    guesses = {
        case: Guess(ALONE_SECONDS)
        if skips(case, settings, place)
        else _guess(case, steps, place, catalog, learned.get(case))
        for case in folders
    }
    known = {
        case: statistics.median(measured[folder])
        for case, folder in folders.items()
        if folder in measured
    }
    measured_cases = [case for case in known if not place.emulates(case)]
    factors = [known[case] / guesses[case].seconds for case in measured_cases]
    factor = statistics.median(factors) if factors else 1.0

    def guess_of(case: Case) -> Guess:
        guess = guesses[case]
        return guess.of(known.get(case, guess.seconds * factor))

    return {case: guess_of(case) for case in folders}


def start_of(framework: str, mode: str, compiler: str, is_small: bool = False) -> float:
    """Seconds of a run besides its steps; ``is_small``: of a model that was made small."""
    if framework in ("", NONE):
        return ALONE_SECONDS
    facts = facts_of(framework)
    seconds: dict[str, float] = {**START_SECONDS, **facts.get("start_seconds", {})}
    trains = mode in ("train", INDEPENDENT)
    is_compiled = compiler not in ("", "none", facts.get("trained_with"))
    begun, part = (seconds["import"], _SMALL) if is_small else (seconds["start"], 1.0)
    return begun + part * (seconds["train"] * trains + seconds["compile"] * is_compiled)


def of_parts(guess: Guess, case: Case, suite: Suite) -> Guess:
    """What it takes more to time the parts of some steps: a framework that compiles training does
    so once more."""
    train = start_of(case.framework, case.mode, "none") - start_of(case.framework, "", "none")
    steps = suite.warmup_steps + suite.timed_steps
    return Guess(train, guess.work * _SPLIT_STEPS / steps)


def _guess(
    case: Case,
    steps: int,
    place: Capacity,
    catalog: Catalog,
    learned: Amounts | Wrong | None = None,
) -> Guess:
    """See :func:`_on_known_core`, on this one."""
    guess = _on_known_core(case, steps, place, catalog, learned)
    is_slow = place.instruction_sets and "avx512f" not in place.instruction_sets
    return guess.of(guess.seconds * SLOWER) if is_slow else guess


def _on_known_core(
    case: Case,
    steps: int,
    place: Capacity,
    catalog: Catalog,
    learned: Amounts | Wrong | None,
) -> Guess:
    """A guess for a core with AVX-512, or a GPU. ``learned``: the samples of one that learns."""
    start = start_of(case.framework, case.mode, case.compiler)
    if case.is_step or case.mode == INDEPENDENT:
        # those that devices compute together are shared out among them
        shared = case.replicas / case.devices
        samples = steps * int(case.batch_per_device) * case.accumulation * shared
        trains = case.mode in ("train", INDEPENDENT)
        return Guess(start, samples * _seconds_of_sample(case, place, catalog, trains))
    if not isinstance(learned, Amounts):
        return Guess(start, MEASURING_SECONDS)
    given = dict(case.parameters)
    epochs, each = int(given["epochs"]), int(given["epoch_steps"])
    trained = epochs * (each * int(case.batch_total or 0) or learned.train)
    scored = (epochs + 1) * learned.held_out  # before the first, too
    work = sum(
        samples * _seconds_of_sample(case, place, catalog, trains) / case.devices
        for samples, trains in ((trained, True), (scored, False))
    )
    return Guess(start + MEASURING_SECONDS, work)


def _seconds_of_sample(case: Case, place: Capacity, catalog: Catalog, trains: bool) -> float:
    operations = 2 * forward_multiply_adds(catalog.models[case.model], case.sequence_length)
    rate = GPU_RATE if place.cores_per_device is None else CORE_RATE * place.cores_per_device
    slower = EMULATED if place.emulates(case) else 1
    # the backward pass costs about two forward passes
    return operations * slower * (3 if trains else 1) / rate


def of_search(case: Case, settings: Settings, place: Capacity, catalog: Catalog) -> float:
    """Seconds of all runs of a search, which knows as little as this guess."""
    steps = batch_searches.WARMUP_STEPS + batch_searches.TIMED_STEPS
    tries = batch_searches.expected(case, settings.suite.largest_batch, catalog)
    return sum(_guess(one, steps, place, catalog).seconds for one in tries)
