"""Performance gates of 20 cases and bisections of 20 versions, with the default options: their
verdicts, and the number of pairs of runs that they take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.features.gate.bisect import CHANGED, UNCHANGED, search
from framebench.statistics import sequential
from framebench.statistics.sequential import LEVEL
from framebench.statistics.verdicts import PAIRS

from tests.framebench.statistics.gates import MARGIN, SAMPLERS, Gates, Sampler, gates

from . import PromiseRow

#: Samplers of independent pairs whose ratios have the median 1 if nothing changed.
INDEPENDENT = ("normal", "drift", "bimodal")
VERSIONS = 20


def gate_rows(draws: int) -> Iterator[PromiseRow]:
    draws //= 10
    for name in SAMPLERS:
        power = 0.9 if name == "normal" else None
        wrong = LEVEL if name in INDEPENDENT else None
        same, one = Gates(name), Gates(name, changed=0.9)
        limit, everything = Gates(name, changed=1 - MARGIN), Gates(name, all_at_limit=True)
        for what, sampled, verdict, low, high in (
            ("nothing changed, passed", same, "passed", power, 1),
            ("nothing changed, a regression", same, "regression", 0, LEVEL),
            ("one 10 % slower, a regression", one, "regression", power, 1),
            ("one 10 % slower, passed", one, "passed", 0, LEVEL),
            ("one at the margin, passed", limit, "passed", 0, wrong),
            ("all at the margin, a regression", everything, "regression", 0, wrong),
        ):
            found = gates(np.random.default_rng(0), sampled, draws)
            sampler = f"20 cases, {name}, {found['pairs']:.1f} pairs"
            yield PromiseRow(f"gate: {what}", sampler, found[verdict], draws, low, high)


def bisection_rows(draws: int) -> Iterator[PromiseRow]:
    draws //= 10
    for name, noise in SAMPLERS.items():
        for ratio in (1.0, 0.9):
            random = np.random.default_rng(0)
            found = [_bisection(random, noise, ratio) for _ in range(draws)]
            endings, pairs = zip(*found, strict=True)
            what = "nothing changed" if ratio == 1 else f"one at {ratio:g} of the speed before"
            sampler = f"{VERSIONS} versions, {what}, {name}, {np.mean(pairs):.0f} pairs"
            wrong, right = endings.count("wrong") / draws, endings.count("right") / draws
            yield PromiseRow("bisect: a wrong version", sampler, wrong, draws, 0, LEVEL)
            if ratio != 1:
                goal = (0.95, 1.0) if name in INDEPENDENT else (None, None)
                promise = "bisect: the right version"
                yield PromiseRow(promise, sampler, right, draws, *goal)


def _bisection(random: np.random.Generator, noise: Sampler, ratio: float) -> tuple[str, int]:
    """Bisect versions that run at ``ratio`` of the first one's speed from a random version on.

    Returns "right", "wrong" or "none" for the version that it names, and the number of pairs."""
    changed = int(random.integers(1, VERSIONS))
    known: dict[int, str] = {}
    pairs = 0
    while (at := search(VERSIONS, known).following) is not None:
        runs = noise(random, (1, PAIRS, 1, 2))[0, :, 0]
        ratios = (ratio if at >= changed else 1.0) * runs[:, 1] / runs[:, 0]
        # like the command, use no more pairs than the decision needs
        both = [sequential.bounds(array.tolist(), MARGIN, 1) for array in (ratios, 1 / ratios)]
        pairs += max(bounds.pairs for bounds in both)
        is_changed = any(bounds.is_beyond(MARGIN) for bounds in both)
        is_open = not is_changed and not all(bounds.is_within(MARGIN) for bounds in both)
        if is_open or (at == VERSIONS - 1 and not is_changed):
            return "none", pairs
        known[at] = CHANGED if is_changed else UNCHANGED
    return ("right" if search(VERSIONS, known).high == changed else "wrong"), pairs
