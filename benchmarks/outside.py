"""SuperBench against ours, in turn, on a CPU: step times of its models.

    .venv/bin/python benchmarks/outside.py [--results results/outside]

Its model benchmarks ``resnet50`` and ``bert-base`` run unmodified. It is in no package index: put a
checkout of microsoft/superbenchmark at ``.peers/sources/superbench``. All in fp32 and one thread on
each physical core; every figure is of a fresh process. There is no goal: a ratio above 1 means that
ours takes less time. Writes ``outside.csv`` and ``outside.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]
#: Our models and batches by SuperBench's names of them; lengths of sequences.
MODELS = {"resnet50": ("resnet50_v1.5", 8, None), "bert-base": ("superbench_bert_base", 4, 64)}
COLUMNS = ("model", "mode", "batch", "cores", "rounds", "ours_ms", "theirs_ms", "ratio",
           "ratio_low", "ratio_high")  # fmt: skip


def superbench(model: str, mode: str) -> float:
    """Return the milliseconds of a step of SuperBench, unmodified."""
    sys.path.insert(0, str(ROOT / ".peers" / "sources" / "superbench"))
    from superbench.benchmarks import BenchmarkRegistry, Framework, Platform

    _, batch, length = MODELS[model]
    parameters = f"--batch_size {batch} --precision float32 --model_action {mode} --no_gpu"
    parameters += f" --num_workers 0 --num_warmup 2 --num_steps 8 --sample_count {batch}"
    parameters += f" --seq_len {length}" if length else ""
    context = BenchmarkRegistry.create_benchmark_context(
        model, platform=Platform.CPU, parameters=parameters, framework=Framework.PYTORCH
    )
    result = BenchmarkRegistry.launch_benchmark(context).result
    return float(result[f"fp32_{mode}_step_time"][0])


def theirs(python: str, model: str, mode: str) -> float:
    """Return the milliseconds of a step of SuperBench in a process of its own."""
    command = [python, __file__, "--inside", model, mode]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(ran.stdout.splitlines()[-1])


def ours(python: str, model: str, mode: str) -> float:
    """Return the milliseconds of a step that the harness records."""
    name, batch, length = MODELS[model]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        command = [python, str(ROOT / "scripts/harness"), f"--kind={mode}", f"--output={path}"]
        command += ["--framework", str(ROOT / "scripts/frameworks/pytorch"), "--accelerator=cpu"]
        command += ["--model", str(ROOT / f"scripts/models/{name}.json")]
        command += [f"--batch-per-device={batch}", "--warmup-steps=2", "--timed-steps=8"]
        command += [f"--cores-per-device={len(os.sched_getaffinity(0))}"]
        command += [f"--sequence-length={length}"] if length else []
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        metrics: dict[str, Any] = json.loads(path.read_text())["metrics"]
    return 1000 * batch / float(metrics["throughput"]["value"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "outside")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        # Operators of torchvision's extension, which PyTorch for CPUs does not load.
        sys.modules["torchvision._meta_registrations"] = ModuleType("_meta_registrations")
        print(f"\n{superbench(*options.inside)}")
        return 0
    import in_turn
    import peers
    from framebench.statistics import descriptive

    peers.use_physical_cores()
    own, python = peers.environment("pytorch"), peers.environment("outside", "pytorch")
    rows: list[tuple[Any, ...]] = []
    for model, (_, batch, _) in MODELS.items():
        for mode in ("inference", "train"):
            sides: tuple[list[float], list[float]] = ([], [])
            for _ in range(options.rounds):
                sides[0].append(ours(own, model, mode))
                sides[1].append(theirs(python, model, mode))
            medians = (round(descriptive.median(side), 3) for side in sides)
            ratios = (round(value, 3) for value in in_turn.ratio(*sides))
            cores = len(os.sched_getaffinity(0))
            rows.append((model, mode, batch, cores, options.rounds, *medians, *ratios))
            print(*rows[-1], flush=True)
            peers.write(COLUMNS, rows, options.results / "outside")
    return 0


if __name__ == "__main__":
    sys.exit(main())
