"""Time of a dry run, an up-to-date check and ``report`` with 1,000 and 10,000 runs.

    .venv/bin/python benchmarks/workflow_speed.py

Each is a fresh process. Prints the best of several rounds, its ratio to the goal, and the ratio of
the two sizes. Tables and report are made by `framebench report`, which must stay under 0.4 GiB.
"""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from in_turn import ROOT

SIZES = (1000, 10000)
ROUNDS = 3
#: Goals in seconds for each of SIZES.
GOALS = {"dry run": (3, 13), "up-to-date check": (2.5, 10), "report": (5, 11)}
MEMORY = 0.4 * 2**30
STEPS = 100
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "all"]


def write_suite(
    path: Path, runs: int, repeats: int, frameworks: Sequence[str], compilers: Sequence[str]
) -> None:
    """Write a suite of ``runs`` runs (a multiple of 4 x repeats x frameworks x compilers)."""
    each = 4 * repeats * len(frameworks) * len(compilers)
    suite = {
        "steps": {"warmup": 20, "timed": STEPS},
        "repeats": repeats,
        "axes": {
            "framework": [*frameworks],
            "model": ["resnet50_v1.5"],
            "mode": ["train", "inference"],
            "precision": ["fp32", "amp"],
            "compiler": [*compilers],
            "batch_per_device": list(range(1, runs // each + 1)),
        },
    }
    path.write_text(yaml.safe_dump(suite))


def write_records(suite: Path, results: Path) -> None:
    """Write a record for every run of the suite, varied from that of a run of ``quick``."""
    from framebench.config import catalog
    from framebench.config.settings import load_settings
    from framebench.machine import local
    from framebench.plan import planning
    from framebench.records.record_files import read

    paths = sorted(ROOT.glob("results/runs/pytorch/resnet50_v1.5/train-fp32-*1n1g*/r1.json"))
    records: Any = (read(path, "train") for path in paths)
    sample = next((record for record in records if record["status"] == "ok"), None)
    if sample is None:
        raise SystemExit("no record of a PyTorch ResNet-50 run in results/runs: run quick first")
    known = catalog.load_catalog(ROOT)
    values = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    values |= {"suite": str(suite), "results": str(results), "accelerator": "cpu"}
    made = planning.make_plan(load_settings(values, known), known, local.detect(), None)
    noise = random.Random(0)
    for run in made.pending:
        record = copy.deepcopy(sample)
        record["kind"] = run.case.mode
        record["case"] = {key: getattr(run.case, key) for key in sample["case"]}
        record["repeat"] = run.repeat
        record["settings"] |= {
            "accelerator": "cpu",
            "cores_per_device": made.capacity.cores_per_device,
            "warmup_steps": 20,
            "warmup_limit": None,
            "timed_steps": STEPS,
        }
        record["settings"].pop("timed_seconds", None)  # set by the suite of the sample only
        seconds = [0.1 * noise.lognormvariate(0, 0.02) for _ in range(STEPS)]
        for rank in record["ranks"]:
            rank |= {"step_seconds": seconds, "window_seconds": sum(seconds)}
        record["samples"] = run.case.batch_per_device * STEPS
        record["window_seconds"] = sum(seconds)
        record["metrics"]["throughput"]["value"] = record["samples"] / sum(seconds)
        path = results / "runs" / f"{run.path}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))


def best(command: list[str]) -> tuple[float, int]:
    """Return the fewest seconds of several calls of a command, and the peak resident bytes of the
    largest process."""
    seconds, peaks = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
            _, status, usage = os.wait4(process.pid, 0)
            seconds.append(time.perf_counter() - start)
            peaks.append(usage.ru_maxrss * 1024)
            if status:
                output.seek(0)
                raise SystemExit(f"{command} failed:\n{output.read()[-3000:]}")
    return min(seconds), max(peaks)


def measure(size: int, folder: Path) -> dict[str, tuple[float, int]]:
    """Return seconds and memory of each command with ``size`` runs."""
    suite, results = folder / "large.yaml", folder / "results"
    write_suite(suite, size, 5, ["pytorch"], ["none"])  # verifying other compilers takes minutes
    config = ["--config", f"suite={suite}", f"results={results}", "accelerator=cpu"]
    found = {"dry run": best([*SNAKEMAKE, "--dry-run", *config])}
    write_records(suite, results)
    report = [sys.executable, str(ROOT / "workflow" / "framebench"), "report"]
    found["report"] = best([*report, "--records", f"{results}/runs", "--results", str(results)])
    # The first call makes tables, verifications and peaks; then everything is up to date.
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
