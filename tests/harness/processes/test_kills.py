"""Random kill -9 of a run's processes: earlier records stay whole, and nothing else is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from framebench.records import record_sets

from ...bench import Bench

MOMENTS = 50
#: Devices of the runs of each chain. A single one takes a third of the time.
DEVICES = (1, 2, 1, 2)
BEHAVIOUR = "sleep=0.05"


def victims(
    bench: Bench, launcher: subprocess.Popen[str], devices: int, chance: random.Random
) -> list[int]:
    """Return the launcher, one of its ranks, or the launcher with some of the others."""
    others = [pid for pid in bench.processes() if pid != launcher.pid]
    ranks = [pid for pid in bench.processes(f"WORLD_SIZE={devices}") if pid != launcher.pid]
    kind = chance.choice(["launcher", "rank", "several"])
    if kind == "rank" and ranks:
        return [chance.choice(ranks)]
    some = [pid for pid in others if pid in ranks and chance.random() < 0.5]
    return [launcher.pid, *(some if kind == "several" else [])]


def chain(folder: Path, seed: int, devices: int, kills: int) -> list[str]:
    """Start runs, each killed once, until one leaves a record; return what is wrong."""
    common = {"devices_per_node": devices}
    chance = random.Random(seed)
    folder.mkdir()
    bench = Bench(folder)
    start = time.monotonic()
    outputs = [folder / "runs" / "case" / "r1.json"]
    first = bench.finish(bench.start(BEHAVIOUR, output=outputs[0], **common))
    assert first.status == 0, first.stderr
    whole = time.monotonic() - start
    seen = {outputs[0]: outputs[0].read_bytes()}
    wrong = []
    for kill in range(kills + 1):
        if outputs[-1].exists():
            outputs.append(outputs[-1].with_name(f"r{len(outputs) + 1}.json"))
        options = {**common, "output": outputs[-1], "repeat": len(outputs)}
        launcher = bench.start(BEHAVIOUR, **options)
        if kill < kills:
            with contextlib.suppress(subprocess.TimeoutExpired):
                launcher.wait(chance.uniform(0, whole))
            running = launcher.poll() is None
            for pid in victims(bench, launcher, devices, chance) if running else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        ended = bench.finish(launcher)
        if ended.status not in (0, -signal.SIGKILL):
            wrong.append(f"the launcher ended with {ended.status}: {ended.stderr}")
        wrong += [f"{path} was changed" for path in seen if path.read_bytes() != seen[path]]
        seen |= {path: path.read_bytes() for path in outputs if path.exists()}
    bench.assert_nothing_left()
    loaded = record_sets.load(folder / "runs")
    wrong += [f"{problem.origin}: {problem.message}" for problem in loaded.problems]
    wrong += [f"{run.origin}: {run.status}: {run.reason}" for run in loaded.runs if not told(run)]
    present = {path.name for path in outputs[0].parent.iterdir()}
    if present != {path.name for path in outputs}:
        wrong.append(f"found {sorted(present)}, not one record of each of {len(outputs)} runs")
    return wrong


def told(run: record_sets.Run) -> bool:
    """Return whether the record of a run is ok, or says that a rank was killed."""
    return run.status == "ok" or (run.status == "failed" and "SIGKILL" in run.reason)


def test_killed_at_fifty_moments(tmp_path: Path) -> None:
    chains = range(len(DEVICES))
    shares = [len(range(number, MOMENTS, len(DEVICES))) for number in chains]
    folders = [tmp_path / str(number) for number in chains]
    with ThreadPoolExecutor(len(DEVICES)) as pool:
        wrong = [
            text for texts in pool.map(chain, folders, chains, DEVICES, shares) for text in texts
        ]
    assert not wrong, "\n".join(wrong)
