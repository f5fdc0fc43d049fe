"""Doubles of ``mpiexec``, ``pbsdsh`` and ``flux``, as their documentation describes them.

``starter_doubles.py NAME ARGUMENTS``. All nodes are this machine. Each double checks its options,
and gives a process the environment, folder and variables of the real starter on another node.
"""

from __future__ import annotations

import os
import subprocess
import sys

#: Environment of a daemon on another node.
BARE = {"PATH": os.defpath, "HOME": "/"}


def mpiexec(arguments: list[str]) -> int:
    """Start processes as Open MPI: options are checked, variables and output are passed on."""
    if arguments[:1] != ["-n"] or arguments[2:6] != ["--map-by", "ppr:1:node", "--bind-to", "none"]:
        return complain(f"mpiexec: unrecognized options {arguments[:6]}")
    return wait(
        [
            (
                arguments[6:],
                {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
                None,
            )
            for rank in range(int(arguments[1]))
        ]
    )


def pbsdsh(arguments: list[str]) -> int:
    """Start a process as OpenPBS: on the node with that index, in the home folder; return 0."""
    if "PBS_ENVIRONMENT" not in os.environ:
        return complain("pbsdsh: not executing under PBS")
    if arguments[:1] != ["-n"] or arguments[2:3] != ["--"]:
        return complain("Usage: pbsdsh [-n node_index][-s][-v][-o] -- program [args...]")
    wait([(arguments[3:], {"PBS_NODENUM": arguments[1], "PBS_JOBID": "7"}, "/")])
    return 0


def flux(arguments: list[str]) -> int:
    """Start processes as ``flux run``: environment and folder are passed on."""
    nodes = int(arguments[1].partition("=")[2])
    options = [f"--nodes={nodes}", f"--ntasks={nodes}", "--exclusive"]
    options += ["-o", "cpu-affinity=off", "-o", "gpu-affinity=off"]
    start = 1 + len(options)
    if arguments[:start] != ["run", *options]:
        return complain(f"flux: unrecognized options {arguments[:start]}")
    own = [{"FLUX_TASK_RANK": str(n), "FLUX_TASK_LOCAL_ID": "0"} for n in range(nodes)]
    return wait([(arguments[start:], {**os.environ, **variables}, None) for variables in own])


def wait(tasks: list[tuple[list[str], dict[str, str], str | None]]) -> int:
    """Run tasks and return their highest status.
    Each task: command, variables besides BARE, folder."""
    marks = {name: os.environ[name] for name in ("FRAMEBENCH_TEST",) if name in os.environ}
    started = [
        subprocess.Popen(
            command,
            # Different node names for nodes that are one machine.
            env={**BARE, **marks, **own, "SLURMD_NODENAME": f"n{place_of(own)}"},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command, own, folder in tasks
    ]
    return max(process.wait() for process in started)


def place_of(variables: dict[str, str]) -> str:
    names = ("OMPI_COMM_WORLD_RANK", "PBS_NODENUM", "FLUX_TASK_RANK")
    return next(variables[name] for name in names if name in variables)


def complain(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit({"mpiexec": mpiexec, "pbsdsh": pbsdsh, "flux": flux}[sys.argv[1]](sys.argv[2:]))
