"""Cost of a suite on a SLURM cluster besides its runs: per job, queue query and node.

    .venv/bin/python benchmarks/cluster_costs.py

Source of the figures in docs/cluster.md. The cluster is that of the tests (slurmctld and four
slurmd on this host), the nodes of a large run are processes of this machine, and queued jobs only
wait. Goal: a job starts its run at most twice as slowly with 10,000 runs in the plan as with 1,000,
however many records there are.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from synthetic_records import ROOT, sample_record, write_records, write_suite

sys.path.insert(0, str(ROOT))

from framebench.plan import limits

from tests.bench import Bench
from tests.harness.nodes.two_nodes import srun_on_path
from tests.slurm.cluster import Cluster, missing

GOAL_GROWTH = 2.0
PLANS = (1000, 10000)
QUEUES = (100, 1000)
NODES = (1, 8, 32)


def best(call: Callable[[], object], rounds: int = 3) -> float:
    """Return the seconds of the fastest of ``rounds`` calls."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def start_of_a_job(runs: int) -> float:
    """Return the seconds from Snakemake's start in a job to the start of the run.
    ``runs``: runs of the plan, half of which have records."""
    with tempfile.TemporaryDirectory() as name:
        suite, results = Path(name, "large.yaml"), Path(name, "results")
        write_suite(suite, runs)
        write_records(suite, results, sample_record())
        records = sorted((results / "runs").rglob("*.json"))
        for record in records[::2]:
            record.unlink()
        limits.write_minutes(results, {})
        framework, model, case, run = records[0].relative_to(results / "runs").parts
        target = f"framework={framework},model={model},case={case},run={Path(run).stem}"
        command = [
            *(sys.executable, "-m", "snakemake", "--cores", "all", "--dry-run"),
            *("--mode", "remote", "--allowed-rules", "benchmark"),
            *("--target-jobs", f"benchmark:{target}"),
            *("--config", f"suite={suite}", f"results={results}", "accelerator=cpu", "yes=true"),
        ]
        return best(lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True))


def queue_costs() -> None:
    """Print the time of submissions and of queries of the queue, on a real slurmctld."""
    with Cluster() as cluster:
        waiting, submitting = 0, 0.0
        for size in QUEUES:
            start = time.perf_counter()
            for _ in range(size - waiting):
                cluster.submit("true", "--hold")
            submitting += time.perf_counter() - start
            waiting = size
            looking = best(cluster.queue)
            print(f"a look at {size:,} jobs in the queue  {looking * 1e3:8.1f} ms")
        print(f"a submission                     {submitting / waiting * 1e3:8.1f} ms")


def node_costs() -> None:
    """Print start and end time of a run besides the ranks' own phases, and its record size.
    Both are measured by number of nodes, which share this machine's cores."""
    found = []
    for nodes in NODES:
        with tempfile.TemporaryDirectory() as name:
            path = {"PATH": srun_on_path(Path(name))}
            record = Bench(Path(name)).run(variables=path, nodes=nodes, timed_steps=100).record
        if record["status"] != "ok":
            raise SystemExit(f"{nodes} nodes: {record['reason']}")
        busiest = max(sum(rank["phases"].values()) for rank in record["ranks"])
        found.append((record["wall_seconds"] - busiest, len(json.dumps(record))))
        print(f"a run on {nodes:2} nodes: {found[-1][0]:8.2f} s {found[-1][1] / 1024:8.1f} KiB")
    more = NODES[-1] - NODES[1]
    seconds, size = ((found[-1][n] - found[1][n]) / more for n in (0, 1))
    print(f"each node more: {seconds:8.2f} s {size / 1024:8.1f} KiB")


def main() -> int:
    problem = missing()
    if problem:
        raise SystemExit(f"needs a SLURM cluster of its own. {problem}")
    starts = [start_of_a_job(runs) for runs in PLANS]
    for runs, seconds in zip(PLANS, starts, strict=True):
        print(f"Snakemake's start in a job, {runs:6,} runs in the plan {seconds:6.2f} s")
    growth = starts[1] / starts[0]
    print(f"growth: {growth:.2f} (goal: at most {GOAL_GROWTH})")
    queue_costs()
    node_costs()
    return int(growth > GOAL_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
