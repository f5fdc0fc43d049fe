"""Suites and records of any size for the benchmarks of the workflow itself."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from in_turn import ROOT

STEPS = 100


def write_suite(
    path: Path,
    runs: int,
    repeats: int = 5,
    frameworks: Sequence[str] = ("pytorch",),
    compilers: Sequence[str] = ("none", "native"),
) -> None:
    """Write a suite of ``runs`` runs (a multiple of 4 x repeats x frameworks x compilers)."""
    each = 4 * repeats * len(frameworks) * len(compilers)
    assert runs % each == 0, f"{runs} is not a multiple of {each}"
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
    """Write a record for every run of the suite, varied from that of a real run of PyTorch."""
    from framebench.config import catalog
    from framebench.config.settings import load_settings
    from framebench.machine import local
    from framebench.plan import planning

    sample = sample_record()
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
        record["settings"].pop("timed_seconds", None)  # a setting of the sample's suite
        seconds = [0.1 * noise.lognormvariate(0, 0.02) for _ in range(STEPS)]
        for rank in record["ranks"]:
            rank |= {"step_seconds": seconds, "window_seconds": sum(seconds)}
        record["samples"] = run.case.batch_per_device * STEPS
        record["window_seconds"] = sum(seconds)
        record["metrics"]["throughput"]["value"] = record["samples"] / sum(seconds)
        path = results / "runs" / f"{run.path}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))


def sample_record() -> dict[str, Any]:
    """Return an ok one-device record of a real PyTorch run in ``results/runs``."""
    from framebench.records.record_files import read

    for path in sorted(ROOT.glob("results/runs/pytorch/resnet50_v1.5/train-fp32-*1n1g*/r1.json")):
        record: dict[str, Any] = read(path, "train")
        if record["status"] == "ok":
            return record
    raise SystemExit("no record of a PyTorch ResNet-50 run in results/runs: run quick first")
