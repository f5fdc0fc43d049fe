"""Start a command once on each node of a job: ``start_nodes.py mpiexec|pbsdsh NODES COMMAND ..``.

Open MPI's ``mpiexec`` and PBS's ``pbsdsh`` do not pass the caller's environment to other nodes, and
``pbsdsh`` not the current folder. A file that only this user can read passes both on, because
command lines are public. It is in the current folder, which all nodes see, and is removed at the
end.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from types import FrameType
from typing import Dict, List, Optional

#: Variables of the process's location, which it keeps as its own starter has set them.
_OWN = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "PBS_", "SLURM", "HOSTNAME", "TMPDIR")


def commands(starter: str, nodes: int, command: List[str]) -> List[List[str]]:
    """Return the command lines that start ``command`` on the nodes. Raises OSError where PBS does
    not list the nodes, and ValueError where they are too few."""
    if starter == "mpiexec":
        placed = ["-n", str(nodes), "--map-by", "ppr:1:node", "--bind-to", "none"]
        return [["mpiexec", *placed, *command]]
    with open(os.environ.get("PBS_NODEFILE", "PBS_NODEFILE"), encoding="utf-8") as file:
        hosts = file.read().split()
    # A host is listed once for each of its MPI processes; a node's index is that of its line.
    first = sorted(hosts.index(host) for host in set(hosts))
    if len(first) < nodes:
        raise ValueError(f"the job has {len(first)} node(s) of {nodes}: {', '.join(hosts)}")
    return [["pbsdsh", "-n", str(index), "--", *command] for index in first[:nodes]]


def start(starter: str, nodes: int, command: List[str]) -> int:
    """Start the command on the nodes and wait. Returns the highest exit status; ``pbsdsh`` does not
    report that of a failed command."""
    started: List["subprocess.Popen[bytes]"] = []

    def end(number: int, frame: Optional[FrameType]) -> None:
        for process in started:
            process.terminate()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    handle, path = tempfile.mkstemp(prefix=".framebench-nodes-", dir=os.getcwd())
    log = f"{path}.log"
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"folder": os.getcwd(), "log": log, "variables": dict(os.environ)}, file)
        entered = [sys.executable, os.path.abspath(__file__), "--enter", path, *command]
        for arguments in commands(starter, nodes, entered):
            started.append(subprocess.Popen(arguments))
        return max(process.wait() for process in started)
    except (OSError, ValueError) as error:
        print(f"{starter}: {error}", file=sys.stderr)
        return 1
    finally:
        os.unlink(path)
        _show(log)


def _show(log: str) -> None:
    """Print the output of the commands, which ``pbsdsh`` leaves to the job."""
    try:
        with open(log, "rb") as file:
            sys.stderr.buffer.write(file.read())
        os.unlink(log)
    except FileNotFoundError:
        pass


def enter(path: str, command: List[str]) -> None:
    """Replace this process by the command, in the environment and folder that the file passes
    on."""
    with open(path, encoding="utf-8") as file:
        handed_on = json.load(file)
    variables: Dict[str, str] = handed_on["variables"]
    variables.update({n: value for n, value in os.environ.items() if n.startswith(_OWN)})
    os.chdir(handed_on["folder"])
    log = os.open(handed_on["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execvpe(command[0], command, variables)


if __name__ == "__main__":
    if sys.argv[1] == "--enter":
        enter(sys.argv[2], sys.argv[3:])
    sys.exit(start(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
