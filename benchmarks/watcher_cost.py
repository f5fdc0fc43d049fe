"""Worst-case cost of the watcher for the run it watches: on the core of the only rank.

    .venv/bin/python benchmarks/watcher_cost.py [--seconds 5] [--rounds 12]

A process works in equal blocks on one core. During every other block, the launcher's watcher
samples on the same core, as it does only if a run uses all cores. Goals: a block with the watcher
takes at most 1.005 of one without, and the watcher at most 0.5 % of one core's time. Valid only if
nothing else runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from harness.processes.own_time import RUN_VARIABLE  # noqa: E402
from harness.telemetry import watcher  # noqa: E402

GOAL_RATIO = 1.005
GOAL_SHARE = 0.005
RUN = "watcher-cost"


def work(amount: int) -> float:
    """Do ``amount`` of the same arithmetic, and return its seconds."""
    start = time.perf_counter()
    value = 1
    for _ in range(amount):
        value = value * 1103515245 + 12345 & 0x7FFFFFFF
    return time.perf_counter() - start


def worker() -> None:
    """Work for the amount on each input line, and print the seconds it took."""
    for line in sys.stdin:
        print(work(int(line)), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a block, about")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [core])
    if options.worker:
        worker()
        return 0
    rank = subprocess.Popen(
        [sys.executable, __file__, "--worker"],
        env={**os.environ, RUN_VARIABLE: RUN},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert rank.stdin is not None
    assert rank.stdout is not None

    def block(amount: int) -> float:
        rank.stdin.write(f"{amount}\n")
        rank.stdin.flush()
        return float(rank.stdout.readline())

    amount = int(options.seconds * 10**6 / block(10**6))
    found: dict[str, list[float]] = {"watched": [], "alone": []}
    shares = []
    for number in range(options.rounds):
        for kind in ("watched", "alone") if number % 2 else ("alone", "watched"):
            if kind == "alone":
                found[kind].append(block(amount))
                continue
            with watcher.Watcher(RUN, [core], os.environ, 0) as watching:
                found[kind].append(block(amount))
            first, last = watching.samples[0], watching.samples[-1]
            spent = last["watching_seconds"] - first["watching_seconds"]
            shares.append(spent / (last["seconds"] - first["seconds"]))
    rank.stdin.close()
    rank.wait()
    ratios = [w / a for w, a in zip(found["watched"], found["alone"], strict=True)]
    ratio, share = statistics.median(ratios), statistics.median(shares)
    for kind, seconds in found.items():
        print(f"median block, {kind + ':':9} {statistics.median(seconds):8.3f} s")
    print(
        f"ratio: {ratio:.4f} (goal: at most {GOAL_RATIO}); of {len(ratios)} pairs of blocks: "
        f"{min(ratios):.4f} to {max(ratios):.4f}"
    )
    print(
        f"share of a core: {share:.3%} (goal: at most {GOAL_SHARE:.1%}), every "
        f"{watcher.INTERVAL_SECONDS:g} s"
    )
    return 0 if ratio <= GOAL_RATIO and share <= GOAL_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
