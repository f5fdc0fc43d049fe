"""Time of a dry run, an up-to-date check and ``report`` with 1,000 and 10,000 runs.

    .venv/bin/python benchmarks/workflow_speed.py

Each is a fresh process. Prints the best of several rounds, its ratio to the goal, and the ratio of
the two sizes. A bare Snakefile of one rule with as many jobs shows the share of Snakemake itself.
Tables and report are made by `framebench report`, which must stay under 0.4 GiB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic_records import ROOT, sample_record, write_records, write_suite

GOALS = {  # seconds for 1,000 and 10,000 runs
    "dry run": (3, 13),
    "up-to-date check": (2.5, 10),
    "report": (5, 11),
}
#: Names of the lower bounds: Snakemake alone with as many jobs, and with none.
FLOORS = {"dry run": "bare dry run", "up-to-date check": "bare up-to-date check"}
BARE = """
outputs = [f"{config['results']}/{number}" for number in range(int(config["jobs"]))]
rule all:
    input: outputs
rule one:
    output: config["results"] + "/{number}"
    shell: "true > {output}"
"""
SIZES = (1000, 10000)
#: Folders of results that all sizes share for verification.
CHECKS = ("reference", "verification", "peak_flops")
MEMORY = 0.4 * 2**30


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument(
        "--sample", type=Path, default=ROOT / "results", help="results with a record of PyTorch"
    )
    options = parser.parse_args()
    sample = sample_record(options.sample)
    snakemake = [sys.executable, "-m", "snakemake", "--cores"]
    framebench = [sys.executable, str(ROOT / "workflow" / "framebench")]
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in (*GOALS, *FLOORS.values())}
    checks = tempfile.TemporaryDirectory()
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as name:
            suite, results = Path(name, "large.yaml"), Path(name, "results")
            write_suite(suite, size, compilers=("none",))  # verifying other compilers takes minutes
            config = ["--config", f"suite={suite}", f"results={results}", "accelerator=cpu"]
            best(found, "dry run", [*snakemake, "all", "--dry-run", *config], options.rounds)
            write_records(suite, results, sample)
            arguments = ["report", "--records", f"{results}/runs", "--results", str(results)]
            best(found, "report", [*framebench, *arguments], options.rounds)
            # The first call makes tables, verifications and peaks; then everything is up to date.
            shutil.copytree(checks.name, results, dirs_exist_ok=True)
            timed([*snakemake, "all", *config])
            for folder in CHECKS:
                shutil.copytree(results / folder, Path(checks.name, folder), dirs_exist_ok=True)
            best(found, "up-to-date check", [*snakemake, "all", *config], options.rounds)
            bare = Path(name, "Snakefile")
            bare.write_text(BARE)
            for goal, jobs in (("dry run", size), ("up-to-date check", 0)):
                arguments = ["all", "--snakefile", str(bare), "--config", f"results={name}/bare"]
                command = [*snakemake, *arguments, f"jobs={jobs}", "--dry-run"]
                best(found, FLOORS[goal], command, options.rounds)
    checks.cleanup()
    failed = False
    print(
        f"{'':22}"
        + "".join(f"{f'{size:,} runs':>14}{'of goal':>9}" for size in options.sizes)
        + f"{'10x runs':>10}"
    )
    for name, values in found.items():
        cells = ""
        for size, (seconds, _) in zip(options.sizes, values, strict=True):
            ratio = "-"
            if name in GOALS:
                goal = GOALS[name][SIZES.index(size)]
                failed |= seconds > goal
                ratio = f"{seconds / goal:.2f}"
            cells += f"{f'{seconds:.2f} s':>14}{ratio:>9}"
        growth = f"{values[-1][0] / values[0][0]:>9.1f}x" if len(values) > 1 else ""
        print(f"{name:22}{cells}{growth}")
    peak = max(memory for _, memory in found["report"])
    print(f"report, peak memory: {peak / 2**30:.2f} GiB (goal: {MEMORY / 2**30:.1f})")
    return int(failed or peak > MEMORY)


def best(
    found: dict[str, list[tuple[float, int]]], name: str, command: list[str], rounds: int
) -> None:
    """Add the best seconds and the peak memory of ``rounds`` calls of a command to ``found``."""
    runs = [timed(command) for _ in range(rounds)]
    found[name].append((min(s for s, _ in runs), max(m for _, m in runs)))


if __name__ == "__main__":
    sys.exit(main())
