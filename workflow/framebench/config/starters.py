"""Commands that start one process on each node of a run that has several, by their names.

The harness pins its ranks itself, because it knows which core is for which: no starter binds cores.
"""

from __future__ import annotations

import shlex
from pathlib import Path

_SCRIPT = Path(__file__).parents[3] / "scripts" / "harness" / "start_nodes.py"
#: Hands environment and folder on, which these starters do not.
_BY_SCRIPT = "{python} " + shlex.quote(str(_SCRIPT)).replace("{", "{{").replace("}", "}}")

#: Commands by the value of ``cluster.starter``, see :func:`command`.
STARTERS = {
    # Memory and devices are all that the job has.
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
    """The command of a starter for so many nodes; ``python`` runs scripts of the harness."""
    return STARTERS[starter].format(nodes=nodes, python=shlex.quote(python))
