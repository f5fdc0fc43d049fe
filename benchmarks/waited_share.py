"""Fraction of a run's time spent on steps that are waited for one by one.

    .venv/bin/python benchmarks/waited_share.py [RECORDS]

Goal: at most 15 % of the wall time of every run that could afford two such steps. Nothing is
measured here: the records, by default those of results/runs, are of runs of the workflow.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]

from framebench.records.record_sets import load, load_record  # noqa: E402
from harness.measuring.synchronous_steps import SHARE  # noqa: E402


def main(folder: Path) -> int:
    shares: dict[str, list[float]] = defaultdict(list)
    over = 0
    for run in load(folder).runs:
        if run.record is None or run.status != "ok" or not run.wall_seconds:
            continue
        for rank in load_record(run.record)["ranks"]:
            seconds = rank.get("phases", {}).get("waited_window_seconds")
            if seconds is None:
                continue
            share = seconds / run.wall_seconds
            shares[run.case.framework].append(share)
            over += share > SHARE and len(rank["waited_step_seconds"]) > 1
    for framework, entry in sorted(shares.items()):
        mean = sum(entry) / len(entry)
        print(
            f"{framework:12} {len(entry):4} windows: {mean:6.1%} on average, {max(entry):6.1%} most"
        )
    print(f"{over} above {SHARE:.0%} (goal: none)" if shares else "no record has such a window")
    return 1 if over or not shares else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results" / "runs"))
