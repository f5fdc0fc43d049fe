"""Agent of a node in a run of several: connects to the launcher, gets its share, and reports
results.

The scheduler starts one on each node (``srun``), with the launcher's command line and, in the
environment, the launcher's addresses.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import sys
import time
from typing import Any, Dict, Sequence

from core import control_groups

from harness.disk.reservation import ReservationError
from harness.machine import cores as cores_of
from harness.machine import hardware, interfaces
from harness.messages import handshake, wire
from harness.messages.report import error_text
from harness.nodes import node
from harness.processes import launch, machine_lock
from harness.processes.cleanup import Interrupted, signals_raise, temporary_folder
from harness.provenance import packages, software
from harness.request.command_line import parse
from harness.request.declaration import Task, task_of

#: Addresses where the launcher listens (``host:port``, joined by commas; one is reachable), and the
#: secret token of the launcher and its nodes.
LAUNCHER_VARIABLE = "FRAMEBENCH_LAUNCHER"
TOKEN_VARIABLE = "FRAMEBENCH_LAUNCHER_TOKEN"

#: Variables of schedulers and starters with a node's number in a job, and a process's on the node.
_INDEX = ("SLURM_NODEID", "PBS_NODENUM", "OMPI_COMM_WORLD_RANK", "FLUX_TASK_RANK")
_LOCAL = ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "FLUX_TASK_LOCAL_ID")
#: Variables that would make a rank believe it belongs to a starter's MPI program.
_OF_MPI = ("OMPI_", "PMIX_", "PMI_", "PRTE_")

_CONNECT_SECONDS = 10.0
#: Attempts to connect, because other callers may have crowded this node out.
_CALLS = 3
#: Seconds to wait for the lock of this node: two runs that each hold a node of the other would
#: wait for ever.
_BUSY_SECONDS = 60.0


def call(addresses: Sequence[str], token: str) -> wire.Connection:
    """Connect to the launcher. Raises OSError or wire.Closed of the last address where none answers
    properly."""
    last: Exception = OSError("no address of the launcher was given")
    for address in addresses:
        host, _, port = address.rpartition(":")
        for _ in range(_CALLS):
            try:
                connection = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
            except OSError as error:
                last = error
                break
            try:
                return handshake.with_launcher(connection, token)
            except wire.Closed as error:
                connection.close()
                last = error
    raise last


def introduction(task: Task, link: wire.Connection, common: Dict[str, str]) -> Dict[str, Any]:
    """Return what the launcher must know of this node before it assigns a share."""
    cores = cores_of.allowed()
    installed = packages.installed(packages.search_path(common, "/"))
    wrong = packages.wrong_environment(task.request.prefix, task.request.pins, installed)
    wrong = wrong or software.missing(task.request, common)
    index = next((os.environ[name] for name in _INDEX if name in os.environ), "")
    local = next((os.environ[name] for name in _LOCAL if name in os.environ), "0")
    if local != "0":
        wrong = wrong or f"is started {int(local) + 1} times; each node must be once"
    return {
        "node": node.name(),
        "index": int(index) if index.isdigit() else None,
        "interface": interfaces.with_address(link.own_host),
        "addresses": launch.free_addresses(task.case.devices_per_node, link.own_host),
        "cores": len(cores),
        "python": platform.python_version(),
        "packages": installed,
        "hardware": hardware.hardware(cores),
        "devices": hardware.visible_gpus(common),
        "wrong": wrong,
    }


def take_part(task: Task, link: wire.Connection) -> None:
    """Take part in the run, from introduction to result. Raises wire.Closed where the launcher is
    gone."""
    request = task.request
    cores_of.restrict(request.cores, control_groups.whole_cores())
    common = node.common_environment(request)
    for name in [name for name in common if name.startswith(_OF_MPI)]:
        del common[name]
    for name in (LAUNCHER_VARIABLE, TOKEN_VARIABLE):
        common.pop(name, None)
    introduced, devices = introduction(task, link, common), node.Devices()
    with contextlib.ExitStack() as stack:
        # The launcher has locked its own machine.
        if not (introduced["wrong"] or link.is_within_machine):
            try:
                lock = machine_lock.held(node.owner(request), seconds=_BUSY_SECONDS)
                devices = node.Devices(stack.enter_context(lock)[0])
            except machine_lock.MachineLockError as error:
                introduced["wrong"] = str(error)
        link.send(introduced)
        message = link.first(request.time_limit)
        share = node.Share(**message)
        deadline = time.monotonic() + share.seconds
        folder = stack.enter_context(temporary_folder(share.run, files=devices.files))
        try:
            node_result = node.run_ranks(task, share, folder, deadline, common, link, devices)
        except Exception as error:
            link.send({"error": error_text(error)})
            return
        # Monotonic times of this machine mean nothing on another.
        now, here = time.time(), time.monotonic()
        outcomes = [
            judged._replace(ended=now - (here - judged.ended)) for judged in node_result.outcomes
        ]
    link.send({"outcomes": outcomes, "watch": node_result.watch, "memory": node_result.memory})


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0 whenever the result was sent to the launcher, else 1."""
    try:
        with signals_raise():
            task = task_of(parse(arguments))
            addresses = os.environ.get(LAUNCHER_VARIABLE, "").split(",")
            link = call(addresses, os.environ.get(TOKEN_VARIABLE, ""))
            try:
                take_part(task, link)
            except ReservationError as error:
                link.send({"error": str(error)})
            except Interrupted as interrupted:
                with contextlib.suppress(wire.Closed):
                    link.send({"interrupted": interrupted.number})
                raise
            finally:
                link.close()
    except (OSError, wire.Closed) as error:
        print(f"{node.name()}: the launcher does not answer: {error}", file=sys.stderr)
        return 1
    except Interrupted as interrupted:
        return 128 + interrupted.number
    return 0
