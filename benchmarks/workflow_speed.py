"""Time of a dry run, an up-to-date check and ``report`` with 1,000 and 10,000 runs.

    .venv/bin/python benchmarks/workflow_speed.py

Each is a fresh process. Prints the best of several rounds, its ratio to the goal, and the ratio of
the two sizes. Tables and report are made by `framebench report`, which must stay under 0.4 GiB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic_records import ROOT, write_records, write_suite

SIZES = (1000, 10000)
ROUNDS = 3
GOALS = {  # seconds for SIZES
    "dry run": (3, 13),
    "up-to-date check": (2.5, 10),
    "report": (5, 11),
}
MEMORY = 0.4 * 2**30
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "all"]


def timed(command: list[str]) -> tuple[float, int]:
    """Return seconds and peak resident bytes (of the largest process) of a successful command."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            output.seek(0)
            raise SystemExit(f"{command} failed:\n{output.read()[-3000:]}")
    return seconds, usage.ru_maxrss * 1024


def best(command: list[str]) -> tuple[float, int]:
    """Return the best seconds and the peak memory of several calls of a command."""
    seconds, memory = zip(*(timed(command) for _ in range(ROUNDS)), strict=True)
    return min(seconds), max(memory)


def measure(size: int, folder: Path) -> dict[str, tuple[float, int]]:
    """Return seconds and memory of each command with ``size`` runs."""
    suite, results = folder / "large.yaml", folder / "results"
    write_suite(suite, size, compilers=("none",))  # verifying other compilers takes minutes
    config = ["--config", f"suite={suite}", f"results={results}", "accelerator=cpu"]
    found = {"dry run": best([*SNAKEMAKE, "--dry-run", *config])}
    write_records(suite, results)
    report = [sys.executable, str(ROOT / "workflow" / "framebench"), "report"]
    found["report"] = best([*report, "--records", f"{results}/runs", "--results", str(results)])
    timed([*SNAKEMAKE, *config])  # makes tables, verifications and peaks; then all is up to date
    found["up-to-date check"] = best([*SNAKEMAKE, *config])
    return found


def main() -> int:
    found = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(size, Path(folder)))
    header = "".join(f"{f'{size:,} runs':>14}{'of goal':>9}" for size in SIZES)
    print(f"{'':18}{header}{'10x runs':>10}")
    failed = False
    for name in found[0]:
        seconds = [by_name[name][0] for by_name in found]
        cells = ""
        for position, value in enumerate(seconds):
            ratio = value / GOALS[name][position]
            failed |= ratio > 1
            cells += f"{f'{value:.2f} s':>14}{ratio:>9.2f}"
        print(f"{name:18}{cells}{seconds[1] / seconds[0]:>9.1f}x")
    peak = max(by_name["report"][1] for by_name in found)
    print(f"report, peak memory: {peak / 2**30:.2f} GiB (goal: {MEMORY / 2**30:.1f})")
    return int(failed or peak > MEMORY)


if __name__ == "__main__":
    sys.exit(main())
