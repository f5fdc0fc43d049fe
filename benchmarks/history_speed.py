"""Time of ``history`` over 100,000 synthetic records in 1,000 sets.

    .venv/bin/python benchmarks/history_speed.py [RECORDS]

Measured with an empty index, with a complete one, and with one new set. Each is a fresh process, in
a temporary folder of about 5 KiB per record.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT)]

from tests.framebench.features.history.result_sets import CASE, write_set  # noqa: E402

RECORDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
REPEATS, CASES = 5, 20
GOAL = 10.0  # seconds, with a complete index
STEPS = 3


def write_sets(folder: Path) -> int:
    """Write sets of CASES cases with REPEATS varied records each; return their number."""
    template = next(write_set(folder.parent / "template", 1.0, 0).rglob("r1.json"))
    sample: dict[str, Any] = json.loads(template.read_text())
    for rank in sample["ranks"]:
        rank |= {"step_seconds": rank["step_seconds"][:STEPS], "warmup_step_seconds": []}
    noise = random.Random(0)
    sets = max(1, RECORDS // (REPEATS * CASES))
    for number in range(sets):
        write_one(folder / f"set-{number:05d}", sample, number, noise)
    return sets


def write_one(folder: Path, sample: dict[str, Any], number: int, noise: random.Random) -> None:
    """Write the result set ``number``. In the second half of the sets, cases of even batch are 5 %
    slower."""
    sets = max(1, RECORDS // (REPEATS * CASES))
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1.6e9 + 3600 * number))
    for batch in range(1, CASES + 1):
        home = folder / "runs" / "pytorch" / "model" / f"case-{batch}"
        home.mkdir(parents=True)
        level = 0.95 if number > sets / 2 and batch % 2 == 0 else 1.0
        level *= noise.gauss(1, 0.01)
        for repeat in range(1, REPEATS + 1):
            seconds = batch / (100 * level * noise.gauss(1, 0.005))
            steps = [seconds] * STEPS
            sample["case"] = {key: value for key, value in CASE.items() if key != "mode"}
            sample["case"]["batch_per_device"] = batch
            sample |= {"repeat": repeat, "started": started, "samples": batch * STEPS}
            sample["window_seconds"] = sum(steps)
            sample["metrics"]["throughput"]["value"] = batch * STEPS / sum(steps)
            for rank in sample["ranks"]:
                rank |= {"step_seconds": steps, "window_seconds": sum(steps)}
            (home / f"r{repeat}.json").write_text(json.dumps(sample))


def timed(sets: Path, results: Path) -> float:
    """Return the seconds of the command, which must succeed."""
    command = [sys.executable, str(ROOT / "workflow" / "framebench"), "history"]
    start = time.perf_counter()
    arguments = ["--sets", str(sets), "--results", str(results)]
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> int:
    with tempfile.TemporaryDirectory() as kept:
        sets, results = Path(kept) / "sets", Path(kept) / "results"
        count = write_sets(sets)
        print(f"{count * CASES * REPEATS} records in {count} sets")
        print(f"none is known   {timed(sets, results):7.1f} s")
        known = timed(sets, results)
        print(f"all are known   {known:7.1f} s  {known / GOAL:.2f} of the goal of {GOAL:g} s")
        (sets / "set-00000").rename(sets / "set-99999")
        print(f"one set is new  {timed(sets, results):7.1f} s")
        index = results / ".history.sqlite"
        print(f"index           {index.stat().st_size / 2**20:7.1f} MiB")
        return 0 if known <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
