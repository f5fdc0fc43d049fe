"""Fuzzing of all kinds of inputs: each must be accepted, or refused by name.

    .venv/bin/python benchmarks/fuzz_inputs.py --inputs 20000 --seed 1

A fault is a traceback, a hang, a message that does not name the file, or a file that has changed.
``--first`` continues after the inputs of an earlier call. Ends with 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "workflow"), str(ROOT / "scripts")]


def main() -> int:
    from tests.framebench.features import fuzz_targets
    from tests.fuzzing import running, targets

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.inputs)
    kinds = (*targets.TARGETS, *fuzz_targets.TARGETS)
    outcome = running.run(options.seed, numbers, kinds, print)
    print(running.report(outcome))
    return bool(outcome.faults)


if __name__ == "__main__":
    sys.exit(main())
