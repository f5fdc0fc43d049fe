"""Performance gates of 20 cases with the default options: verdicts, and pairs that they take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics.sequential import LEVEL

from tests.framebench.statistics.gates import MARGIN, SAMPLERS, Gates, gates

from .row import PromiseRow

#: Samplers with the noise for which power is promised.
PROMISED = ("normal",)
#: Samplers of independent pairs whose median, if it is unchanged, is 1.
INDEPENDENT = ("normal", "drift", "bimodal")


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about gates."""
    draws //= 10
    for name in SAMPLERS:
        power = 0.9 if name in PROMISED else None
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
