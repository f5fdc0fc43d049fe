"""Peak memory of the float64 reference of every model, at the sizes of the verifications.

    .venv/bin/python benchmarks/reference_memory.py [MODEL ..] [--steps 5] [--tokens 512] [--keep]

The sequence lengths are those of the shipped suites, and 128 tokens for models in no suite. Models
run one after the other, the largest last. Goal: each below 8 GiB. One optimizer step by default: it
allocates the moments, and further steps hold no more. With --keep the peaks are written to
tests/data/reference_memory.csv, by which a test bounds those of all models.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow"), str(ROOT)]

from reference import compute  # noqa: E402

from tests.frameworks.sizes import compared_at, config_at  # noqa: E402

GOAL = 8.0  # GiB
KEPT = ROOT / "tests/data/reference_memory.csv"
COLUMNS = ("model", "tokens", "parameters", "gib")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(model: str, tokens: int | None, steps: int) -> None:
    """Compute one reference, and print its peak memory in bytes."""
    compute.STEPS, compute.FEWEST_PASSES, compute.MOST_PASSES = steps, 2, 2
    with tempfile.TemporaryDirectory() as folder:
        compute.write(config_at(model), tokens, 0, Path(folder) / "reference")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def measured(model: str, tokens: int | None, steps: int) -> tuple[float, float]:
    """Return the peak memory in GiB, and the seconds, of a reference in a separate process."""
    arguments = [sys.executable, __file__, "--worker", model, "--steps", str(steps)]
    arguments += ["--tokens", str(tokens)] if tokens else []
    start = time.monotonic()
    environment = {**os.environ, **dict.fromkeys(THREADS, "2")}
    done = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout) / 2**30, time.monotonic() - start


def keep(model: str, tokens: int | None, peak: float) -> None:
    """Write a peak to KEPT, replacing an earlier one of that size."""
    new = [model, str(tokens or ""), str(config_at(model)["trainable_parameters"]), f"{peak:.2f}"]
    with KEPT.open(newline="") as file:
        _, *rows = csv.reader(file)
    others = [row for row in rows if row[:2] != new[:2]]
    with KEPT.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *sorted([*others, new])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument(
        "--steps", type=int, default=1, help="of the optimizer; verification takes 5"
    )
    parser.add_argument("--tokens", type=int, help="another length of sequences")
    parser.add_argument("--keep", action="store_true", help="for the test that bounds all")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.nice(19)
    if options.worker:
        measure(options.models[0], options.tokens, options.steps)
        return 0
    sizes = [item for item in compared_at() if not options.models or item[0] in options.models]
    if options.tokens:
        sizes = sorted({(model, options.tokens) for model, _ in sizes})

    def parameters(size: tuple[str, int | None]) -> int:
        return int(config_at(size[0])["trainable_parameters"])

    good = True
    print(f"{'model':26} {'tokens':>6} {'GiB':>6} {'seconds':>8}")
    for model, tokens in sorted(sizes, key=parameters):
        peak, seconds = measured(model, tokens, options.steps)
        good = good and peak < GOAL
        if options.keep:
            keep(model, tokens, peak)
        print(f"{model:26} {tokens or '':>6} {peak:6.2f} {seconds:8.0f}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
