"""Agent of a node in a run of several: ``srun`` starts one on each, with the folder that they share
with the launcher. It says what its node has, runs its share of the ranks, and writes how it went.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import sys
import time
import traceback
from typing import Any, Dict, List

from core import control_groups, signals

from harness.machine import cores as cores_of
from harness.machine import hardware, interfaces
from harness.machine.sources import file_line
from harness.messages.report import error_text
from harness.nodes import node, shared
from harness.processes import launch, machine_lock
from harness.processes.cleanup import temporary_folder
from harness.provenance import packages, software
from harness.request.command_line import parse
from harness.request.declaration import Task, task_of

#: Variables of a step's process: the number of its node, and the address of the node of ``srun``.
_INDEX, _LAUNCHER = "SLURM_NODEID", "SLURM_LAUNCH_NODE_IPADDR"
#: Seconds to wait for the lock of this node: two runs that each hold a node of the other would
#: wait for ever.
_BUSY_SECONDS = 60.0
_LOOK_SECONDS = 0.5


def this_machine() -> str:
    """Return what tells this machine from others."""
    return f"{socket.gethostname()} {file_line('/proc/sys/kernel/random/boot_id')}"


def own_address() -> str:
    """Return this node's address on the way to that of the launcher."""
    launcher = os.environ.get(_LAUNCHER)
    if launcher:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
            unsent.connect((launcher, 9))  # sends nothing
            return str(unsent.getsockname()[0])
    others = [address for name, address in interfaces.addresses().items() if name != "lo"]
    return [*others, "127.0.0.1"][0]


def introduction(task: Task, common: Dict[str, str]) -> Dict[str, Any]:
    """Return what the launcher must know of this node before it assigns a share."""
    cores = cores_of.allowed()
    installed = packages.installed(packages.search_path(common, "/"))
    wrong = packages.wrong_environment(task.request.prefix, task.request.pins, installed)
    address = own_address()
    return {
        "node": node.name(),
        "interface": interfaces.with_address(address),
        "addresses": launch.free_addresses(task.case.devices_per_node, address),
        "cores": len(cores),
        "python": platform.python_version(),
        "packages": installed,
        "hardware": hardware.hardware(cores),
        "devices": hardware.visible_gpus(common),
        "wrong": wrong or software.missing(task.request, common),
    }


def take_part(task: Task, folder: str, index: int, launcher: str, asked: List[int]) -> bool:
    """Take part in the run, from introduction to result. Returns whether all went well.

    ``launcher``: its machine. ``asked``: signals that asked this process to end so far."""
    request = task.request
    cores_of.restrict(request.cores, control_groups.whole_cores())
    common = node.common_environment(request)
    introduced, devices = introduction(task, common), node.Devices()
    with contextlib.ExitStack() as stack:
        # The launcher has locked its own machine.
        if not (introduced["wrong"] or launcher == this_machine()):
            try:
                lock = machine_lock.held(node.owner(request), seconds=_BUSY_SECONDS)
                devices = node.Devices(stack.enter_context(lock)[0])
            except machine_lock.MachineLockError as error:
                introduced["wrong"] = str(error)
        shared.write(folder, shared.introduction(index), introduced)
        message = None
        while message is None and not asked:
            time.sleep(_LOOK_SECONDS)
            message = shared.read(folder, shared.SHARES)
        if message is None:
            return False
        # A mark per node: where several nodes are one machine, each cleans up its own processes.
        first = index * task.case.devices_per_node
        share = node.Share(f"{message['run']}-{index}", first, message["addresses"])
        deadline = time.monotonic() + message["seconds"]
        own = stack.enter_context(temporary_folder())
        node_result = node.run_ranks(task, share, own, deadline, common, asked, devices)
        # Monotonic times of this machine mean nothing on another.
        now, here = time.time(), time.monotonic()
        outcomes = [
            judged._replace(ended=now - (here - judged.ended)) for judged in node_result.outcomes
        ]
    left = {"outcomes": outcomes, "watch": node_result.watch, "memory": node_result.memory}
    shared.write(folder, shared.result(index), {**left, "asked": asked})
    return all(judged.fields["status"] == "ok" for judged in outcomes)


def main(folder: str) -> int:
    """Return the exit status: 0 if all went well, else another, at which ``srun`` ends the
    others."""
    asked: List[int] = []
    for number in signals.ENDING:
        signal.signal(number, lambda number, frame: asked.append(number))
    index = int(os.environ[_INDEX])
    try:
        request = shared.read(folder, shared.REQUEST) or {}
    except OSError as error:
        allowed = "an --output that all nodes see"
        print(
            f"node {node.name()}: {folder}: {error.strerror}; allowed: {allowed}", file=sys.stderr
        )
        return 1
    try:
        task = task_of(parse(request["arguments"]))
        good = take_part(task, folder, index, request["machine"], asked)
    except Exception as error:
        traceback.print_exc()
        shared.write(folder, shared.result(index), {"error": error_text(error), "asked": asked})
        return 1
    return 128 + asked[0] if asked else int(not good)
