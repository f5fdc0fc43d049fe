"""Overhead of the harness: its ResNet-50 training step against a bare PyTorch loop of our model.

    .venv/bin/python benchmarks/harness_overhead.py [--batch 4] [--steps 5] [--rounds 12]

The loops are interleaved in one process, on one core. Goal: in the median round, a step in the
harness takes at most 1.01 of a bare one. Runs in the PyTorch environment that the workflow built
(``--python`` for another).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from operator import itemgetter
from typing import Any

import in_turn
import peers
from in_turn import ROOT

GOAL = 1.01


def measure(batch: int, steps: int, rounds: int) -> dict[str, Any]:
    """Return the seconds of a step in each round, by loop."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    from harness.measuring import window

    adapter, arrays = peers.build_ours("pytorch", peers.RESNET, "train", "none", batch)
    from peer_models import Assignment, pytorch

    def harness_loop(count: int) -> float:
        return window.measure(adapter, count, window.run_ahead(adapter)).seconds

    work = Assignment(arrays, adapter.model_config["hyperparameters"], True, "none")
    bare_loop = pytorch.image_loop(adapter.definition().build(), work, itemgetter(0))
    return in_turn.measure({"harness": harness_loop, "bare": bare_loop}, rounds, steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--python", help="interpreter of an environment with PyTorch")
    parser.add_argument("--inside", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measure(*options.inside)))
        return 0
    python = options.python or min(ROOT.glob(".venvs/pytorch-*/bin/python"), default=None)
    if python is None:
        parser.error("no PyTorch environment in .venvs: run the workflow first, or give --python")
    os.environ["OMP_NUM_THREADS"] = "1"
    arguments = [options.batch, options.steps, options.rounds]
    seconds = in_turn.run_inside(str(python), __file__, arguments)
    for name, values in seconds.items():
        print(f"median step, {name}: {1000 * statistics.median(values):.2f} ms")
    ratio, low, high = in_turn.ratio(seconds["bare"], seconds["harness"])
    print(f"ratio: {ratio:.4f} [{low:.4f}, {high:.4f}] (goal: at most {GOAL})")
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
