"""Overhead of the harness: its ResNet-50 training step against a bare PyTorch loop.

    .venv/bin/python benchmarks/harness_overhead.py [--batch 4] [--steps 5] [--rounds 12]

The loops are interleaved in one process. Goal: the median step in the harness takes at most 1.01
of the bare one. Runs in the PyTorch environment that the workflow built (``--python`` for another),
on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOAL = 1.01


def measure(batch_size: int, steps: int, rounds: int) -> None:
    """Run all loops in turn, and print the seconds of each step by loop as JSON."""
    sys.path.insert(0, str(ROOT / "scripts"))
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    from harness import declaration
    from harness.adapter import Case, RankContext
    from harness.adapter.base import load_adapter
    from harness.measuring import window
    from harness.measuring.model import make_batch

    model_config = declaration.read_model(str(ROOT / "scripts/models/resnet50_v1.5.json"))
    case = Case("pytorch", "resnet50_v1.5", "train", 1, 1, batch_size, "fp32", "none", None)
    rank_context = RankContext(0, 0, ["127.0.0.1:0"], "cpu", 1, 0)
    folder = str(ROOT / "scripts/frameworks/pytorch")
    adapter = load_adapter(folder, case, model_config, rank_context)
    adapter.start()
    batch = make_batch(model_config["inputs"], batch_size, None, 0, 0)
    adapter.build(batch)

    import torch
    from framework_under_test.models import cnn

    model = cnn.Definition(case, model_config, rank_context).build().train()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True
    )
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.from_numpy(batch["images"]).permute(0, 3, 1, 2)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.from_numpy(batch["labels"])

    def bare_loop(count: int) -> list[float]:
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            optimizer.zero_grad()
            (output,) = model(images)
            output = output[0] if isinstance(output, tuple) else output
            loss = criterion(output, labels)
            loss.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
        return seconds

    def harness_loop(count: int) -> list[float]:
        return window.measure(adapter, count, window.run_ahead(adapter)).step_seconds

    loops = {"harness": harness_loop, "bare": bare_loop}
    found: dict[str, list[list[float]]] = {name: [] for name in loops}
    for loop in loops.values():
        loop(3)
    for number in range(rounds):
        order = list(loops) if number % 2 else list(loops)[::-1]
        for name in order:
            found[name].append(loops[name](steps))
    print(json.dumps(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--python", help="interpreter of an environment with PyTorch")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        measure(options.batch, options.steps, options.rounds)
        return 0
    python = options.python or next(iter(sorted(ROOT.glob(".venvs/pytorch-*/bin/python"))), None)
    if python is None:
        print("no PyTorch environment in .venvs: run the workflow first, or give --python")
        return 1
    arguments = [f"--{key}={getattr(options, key)}" for key in ("batch", "steps", "rounds")]
    ran = subprocess.run(
        [str(python), __file__, "--inside", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    content = json.loads(ran.stdout.splitlines()[-1])
    medians = {
        name: statistics.median(second for block in blocks for second in block)
        for name, blocks in content.items()
    }
    pairs = [
        statistics.median(ours) / statistics.median(bare)
        for ours, bare in zip(content["harness"], content["bare"], strict=True)
    ]
    ratio = medians["harness"] / medians["bare"]
    print(f"median step, harness: {1000 * medians['harness']:9.2f} ms")
    print(f"median step, bare:    {1000 * medians['bare']:9.2f} ms")
    print(
        f"ratio: {ratio:.4f} (goal: at most {GOAL}); of {len(pairs)} pairs of blocks: "
        f"median {statistics.median(pairs):.4f}, {min(pairs):.4f} to {max(pairs):.4f}"
    )
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
