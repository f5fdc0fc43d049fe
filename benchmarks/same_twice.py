"""Measure a suite into two results folders, and compare their answers.

    .venv/bin/python benchmarks/same_twice.py [--results results/twice] [--hours 0]

Goal: at least 95 % of the significant orders of one folder repeat in the other, of at least 20. The
suite has small models, because two cores settle few orders of ``quick``. ``--hours`` pass between
both. Results of two machines: ``framebench compare --base A --candidate B``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from in_turn import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "twice")
    parser.add_argument("--hours", type=float, default=0.0)
    options = parser.parse_args()
    base, candidate = (str(options.results.resolve() / name) for name in ("first", "second"))
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "all", "--config"]
    for number, folder in enumerate((base, candidate)):
        if number:
            time.sleep(3600 * options.hours)
        command = [*snakemake, "suite=benchmarks/twice.yaml", f"results={folder}"]
        subprocess.run(command, cwd=ROOT, check=True)
    compare = [sys.executable, str(ROOT / "workflow" / "framebench"), "compare"]
    compare += ["--base", base, "--candidate", candidate, "--results", str(options.results)]
    return subprocess.run(compare).returncode


if __name__ == "__main__":
    sys.exit(main())
