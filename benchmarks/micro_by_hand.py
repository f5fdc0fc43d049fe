"""Harness benchmarks ``matmul`` and ``collective`` against hand-written PyTorch loops.

    .venv/bin/python benchmarks/micro_by_hand.py [--rounds 24]

Both use the same arrays, in turn, in the harness's blocks. Goals: within 5 % (ratio from 0.95 to
1.05, the median over rounds) of the faster of two calls of a matmul, on one core, and of an
all-reduce by Gloo, on two. Runs in the PyTorch environment that the workflow built.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]

from in_turn import measure, milliseconds, ratio, repeated  # noqa: E402

#: Size of both operands; matmuls in a block.
SIZE, PRODUCTS = 512, 20
#: Bytes of the message; all-reduces in a block.
MESSAGE, REDUCES = 1 << 20, 40
LOW, HIGH = 0.95, 1.05
OURS = "ours"


def products(adapter: Any) -> tuple[dict[str, Callable[[], Any]], int]:
    """Return a block of matmuls for each method, and the number of matmuls in it."""
    import numpy as np
    import torch
    from harness.measuring import blocks
    from harness.operations import MATMUL

    arrays = [np.random.rand(SIZE, SIZE).astype(np.float32) for _ in range(2)]
    made = adapter.operation(MATMUL, arrays)
    a, b = map(torch.from_numpy, arrays)
    out = torch.empty(SIZE, SIZE)
    loops = {
        OURS: lambda: blocks.time_together(adapter, made.run, PRODUCTS),
        "torch.matmul": repeated(lambda: torch.matmul(a, b), PRODUCTS),
        "torch.mm(out=)": repeated(lambda: torch.mm(a, b, out=out), PRODUCTS),
    }
    return loops, PRODUCTS


def reduces(adapter: Any) -> tuple[dict[str, Callable[[], Any]], int]:
    """Return a block of all-reduces for each method, and the number of all-reduces in it.
    Each block begins when all ranks are there, with the original values."""
    import numpy as np
    import torch
    import torch.distributed as dist
    from harness.communication import ALL_REDUCE
    from harness.measuring.micro import collectives

    array = np.random.rand(MESSAGE // 4).astype(np.float32)
    made = adapter.collective(ALL_REDUCE, array, "float32")
    contribution = torch.from_numpy(array)
    held = contribution.clone()
    together = torch.zeros(1)

    def by_hand() -> None:
        held.copy_(contribution)
        dist.all_reduce(together)
        for _ in range(REDUCES):
            dist.all_reduce(held)

    loops = {
        OURS: lambda: collectives.timed_block(adapter, made, REDUCES),
        "dist.all_reduce": by_hand,
    }
    return loops, REDUCES


def of_rank(rank: int, addresses: list[str], rounds: int) -> None:
    """Run the loops of one rank; rank 0 prints the seconds of an operation in each round, by
    method."""
    os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[rank]])
    from harness.adapter import Case, RankContext
    from harness.measuring.loading import load_adapter

    case = Case("pytorch", "", "inference", 1, len(addresses), 1, "fp32", "none", None)
    rank_context = RankContext(rank, rank, addresses, "cpu", 1, 0)
    adapter = load_adapter(str(ROOT / "scripts/frameworks/pytorch"))(case, {}, rank_context)
    adapter.start()
    loops, steps = (reduces if len(addresses) > 1 else products)(adapter)
    found = measure(loops, rounds, steps)
    if rank == 0:
        print(json.dumps(found))
    adapter.stop()


def by_way(python: Path, ranks: int, rounds: int) -> dict[str, list[float]]:
    from harness.processes.launch import free_addresses

    addresses = ",".join(free_addresses(ranks))
    command = [str(python), __file__, "--rounds", str(rounds), "--addresses", addresses, "--rank"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    started = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True, env=environment)
        for rank in range(ranks)
    ]
    printed = [popen.communicate()[0] for popen in started]
    if any(popen.returncode for popen in started):
        raise SystemExit("a process failed")
    results: dict[str, list[float]] = json.loads(printed[0].splitlines()[-1])
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--addresses", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.addresses:
        of_rank(options.rank, options.addresses.split(","), options.rounds)
        return 0
    python = next(iter(sorted(ROOT.glob(".venvs/pytorch-*/bin/python"))), None)
    if python is None:
        print("no PyTorch environment in .venvs: run the workflow first")
        return 2
    missed = 0
    for what, ranks in (("product", 1), ("all-reduce", 2)):
        found = by_way(python, ranks, options.rounds)
        ours = found.pop(OURS)
        name, best = min(found.items(), key=lambda item: statistics.median(item[1]))
        middle, low, high = ratio(ours, best)
        missed += not LOW <= middle <= HIGH
        print(f"{what}: {milliseconds(ours)}, {name} by hand: {milliseconds(best)}")
        print(
            f"{what}: rate over that by hand {middle:.3f} [{low:.3f}, {high:.3f}]  {LOW} .. {HIGH}"
        )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
