"""Simulated performance gates of 20 cases with the default options, seeded.

    .venv/bin/python benchmarks/gate_power.py [GATES]

Prints promise, sampler, goal and result. Ends with 1 if a goal is missed by more than three
standard errors of the simulation. Rows without a goal show what to expect.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT)]

from framebench.statistics.sequential import LEVEL  # noqa: E402

from tests.framebench.statistics.gates import MARGIN, SAMPLERS, Gates, gates  # noqa: E402

GATES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
LIMIT = 1 - MARGIN
#: Samplers with the noise for which power is promised.
PROMISED = ("normal",)
#: Samplers of unchanged cases whose median pair is the limit.
INDEPENDENT = ("normal", "drift", "bimodal")


def main() -> int:
    print(f"{'promise':<52} {'sampler':<10} {'goal':>8} {'result':>8} {'pairs':>6}")
    missed = False
    for name in SAMPLERS:
        powered, exact = name in PROMISED, name in INDEPENDENT
        same, one = Gates(name), Gates(name, changed=0.9)
        limit, everything = Gates(name, changed=LIMIT), Gates(name, all_at_limit=True)
        for what, sampled, verdict, low, high in (
            ("nothing changed: passed", same, "passed", 0.9 if powered else 0, 1),
            ("nothing changed: regression", same, "regression", 0, LEVEL),
            ("one of 20 slower by 10 %: regression", one, "regression", 0.9 if powered else 0, 1),
            ("one of 20 slower by 10 %: passed", one, "passed", 0, LEVEL),
            ("one of 20 at the margin: passed", limit, "passed", 0, LEVEL if exact else 1),
            ("all at the margin: regression", everything, "regression", 0, LEVEL if exact else 1),
        ):
            found = gates(np.random.default_rng(0), sampled, GATES)
            missed |= show(what, name, found[verdict], (low, high), found["pairs"])
    return int(missed)


def show(what: str, sampler: str, found: float, goal: tuple[float, float], pairs: float) -> bool:
    """Print a row, and return whether its goal is missed."""
    low, high = goal
    error = 3 * max((edge * (1 - edge) / GATES) ** 0.5 for edge in goal)
    missed = not low - error <= found <= high + error
    text = f">= {low:.1%}" if low else f"<= {high:.1%}" if high < 1 else "-"
    mark = "  MISSED" if missed else ""
    print(f"{what:<52} {sampler:<10} {text:>8} {found:8.2%} {pairs:6.1f}{mark}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
