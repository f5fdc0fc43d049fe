"""Commands that start one process on each node of a multi-node run, by starter.

No starter binds cores, because the harness pins its ranks itself.
"""

from __future__ import annotations

import shlex
from pathlib import Path

_SCRIPT = Path(__file__).parents[3] / "scripts" / "harness" / "start_nodes.py"
#: Script that passes environment and folder on, which these starters do not.
_BY_SCRIPT = "{python} " + shlex.quote(str(_SCRIPT)).replace("{", "{{").replace("}", "}}")

#: Commands by the value of ``cluster.starter``, see :func:`command`.
STARTERS = {
    # --mem=0: the step gets all memory of the job.
    "srun": (
        "srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --cpu-bind=none --mem=0"
        " --mpi=none --kill-on-bad-exit=0"
    ),
    "mpiexec": f"{_BY_SCRIPT} mpiexec {{nodes}}",
    "pbsdsh": f"{_BY_SCRIPT} pbsdsh {{nodes}}",
    "flux": (
        "flux run --nodes={nodes} --ntasks={nodes} --exclusive"
        " -o cpu-affinity=off -o gpu-affinity=off"
    ),
}


def command(starter: str, nodes: int, python: str) -> str:
    """Return the command of a starter for so many nodes; ``python`` runs scripts of the harness."""
    return STARTERS[starter].format(nodes=nodes, python=shlex.quote(python))
