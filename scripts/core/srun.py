"""The command that starts a process on each node of a SLURM job."""

from __future__ import annotations

from typing import List


def srun(nodes: int) -> List[str]:
    """Return the words before a command that runs once on each of so many ``nodes``.

    It ends on all once it fails on one. No cores are bound, because the harness pins its ranks
    itself; ``--mem=0`` gives the step all memory of the job."""
    count = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    return ["srun", *count, "--cpu-bind=none", "--mem=0", "--mpi=none", "--kill-on-bad-exit=1"]
