"""Full-size simulation of calls with a time budget, seeded.

    .venv/bin/python benchmarks/time_budget.py [DRAWS]

Prints, for each kind of noise, how many calls name a wrong winner among two equal leaders, and how
many find a lead of 10 % at all settings. Ends with 1 if a promise is missed by more than three
standard errors of the simulation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / part) for part in ("workflow", "scripts", "")]

from framebench.statistics.verdicts import FALSE_WINNERS  # noqa: E402

from tests.framebench.plan.simulated_calls import (  # noqa: E402
    EQUAL,
    LEADING,
    NOISES,
    SIMULATED,
    call,
)

DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
SETTINGS = 3


def main() -> int:
    missed = []
    print("noise: wrong winner, lead of 10 % found at all settings, in % of calls")
    for name, noise in NOISES.items():
        random = np.random.default_rng(1)
        again = [call(random, (EQUAL,) * SETTINGS, noise, calls=2) for _ in range(DRAWS)]
        wrong = np.mean([any(one is not None for one in found.winners) for found in again])
        once = [call(random, (LEADING,) * SETTINGS, noise) for _ in range(DRAWS)]
        found = np.mean([one.winners == [0] * SETTINGS for one in once])
        print(f"{name:<32} {100 * wrong:6.1f} {100 * found:6.1f}", flush=True)
        if wrong > FALSE_WINNERS + 3 * (FALSE_WINNERS / DRAWS) ** 0.5:
            missed.append(f"{name}: wrong winners")
        promised = SIMULATED[name][1] / 100
        if found < promised - 3 * (0.25 / DRAWS) ** 0.5:
            missed.append(f"{name}: leads found")
    print(*(f"MISSED: {one}" for one in missed), sep="\n")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
