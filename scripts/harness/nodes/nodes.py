"""Run over several nodes: ``srun`` starts an agent on each, which runs its share of the ranks.

Launcher and agents tell each other everything in a folder beside the output, on the file system
that all nodes share:

1. The launcher writes the request and starts the agents; each writes what its node has.
2. The launcher checks that each can do its share and that they are alike, and writes who does what.
3. Each agent runs its ranks and writes how it went. ``srun`` ends the agents of all nodes once one
   of them fails or is lost.
4. The launcher reads what they have left.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from core import bounded, control_groups, signals
from core.srun import srun
from core.text import shorten

from harness.adapter import Mismatch
from harness.machine import cores as cores_of
from harness.machine import hardware, interfaces
from harness.machine.sources import command_output, file_line
from harness.messages.report import error_text
from harness.nodes import node as one_node
from harness.output import partial
from harness.processes import launch, machine_lock, outcome
from harness.processes.cleanup import Interrupted, temporary_folder
from harness.processes.parent_death import signal_when_parent_dies
from harness.provenance import packages, software
from harness.request.command_line import parse
from harness.request.declaration import Task, task_of

_HARNESS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_START_NODE = os.path.join(_HARNESS, "start_node.py")

#: Files in the folder, besides those of each node.
_REQUEST, _SHARES = "request", "shares"
#: Variables of a step's process: the number of its node, and the address of the node of ``srun``.
_INDEX, _LAUNCHER = "SLURM_NODEID", "SLURM_LAUNCH_NODE_IPADDR"

#: Most seconds until all nodes have answered, which occupy their devices meanwhile.
ANSWER_SECONDS = 120.0
#: Seconds between two looks into the folder, of the launcher and of an agent.
_LOOK_SECONDS, _AGENT_LOOK_SECONDS = 0.2, 0.5
#: Seconds that a node may take after its own time limit to say how it went.
_RESULT_SECONDS = 30.0
_LEAVE_SECONDS = 15.0
#: Seconds to wait for the lock of a node: two runs that each hold a node of the other would wait
#: for ever.
_BUSY_SECONDS = 60.0


class Missing(Exception):
    """Raised where not all nodes take part; the message names them."""


class StartTimeout(Exception):
    """Raised where the time limit is reached before all nodes have answered."""


@dataclass
class Node:
    """Node of the run: its introduction and, at the end, its result: ``outcomes``, None where it is
    ``lost``, and the signals that ``asked`` it to end."""

    introduction: Dict[str, Any]
    outcomes: Optional[List[outcome.RankOutcome]] = None
    memory: Optional[Dict[str, Any]] = None
    watch: Optional[Dict[str, Any]] = None
    asked: Sequence[int] = ()
    lost: str = ""

    @property
    def name(self) -> str:
        return str(self.introduction["node"])


def run_ranks(
    task: Task, run: str, deadline: float, arguments: Sequence[str]
) -> Tuple[List[outcome.RankOutcome], List[Dict[str, Any]]]:
    """Return the outcomes of all ranks, and an entry of the record for each node.

    ``arguments``: command line of this launcher. Raises Missing, StartTimeout, and Mismatch where
    the nodes are not alike, and Interrupted where nodes were asked to end."""
    log = launch.log_with_name(task.request.log, "nodes")
    with _folder(task.request.output, run) as folder:
        request = {"arguments": list(arguments), "machine": _this_machine()}
        _write(folder, _REQUEST, request)
        command = [*srun(task.case.nodes), sys.executable, _START_NODE, folder]
        with _started(command, log) as starter:
            nodes = _introduced(task, folder, starter, deadline, log)
            check(task, nodes)
            addresses = [address for node in nodes for address in node.introduction["addresses"]]
            shares = {"run": run, "addresses": addresses, "seconds": deadline - time.monotonic()}
            _write(folder, _SHARES, shares)
            launch.wait_for(starter, deadline + _RESULT_SECONDS)
            for index, node in enumerate(nodes):
                _read_result(node, _read(folder, _result_file(index)))
            _check_interrupted(nodes)
    entries = [_entry(node) for node in nodes]
    return [
        judged for index, node in enumerate(nodes) for judged in _outcomes(task, node, index)
    ], entries


@contextlib.contextmanager
def _folder(output: str, run: str) -> Iterator[str]:
    """Yield the folder of the run beside its output."""
    folder = partial(output, f"{run}.nodes")
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(command: List[str], log: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield the process that starts the agents, which ends with this one. It has ended on exit."""
    try:
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: signal_when_parent_dies(signal.SIGTERM),
            )
    except OSError as error:
        raise Missing(f"the nodes cannot be started: {command[0]}: {error.strerror}") from None
    try:
        yield process
    finally:
        for end in (process.terminate, process.kill):
            if process.poll() is None:
                end()
                launch.wait_for(process, time.monotonic() + _LEAVE_SECONDS)


def _introduced(
    task: Task,
    folder: str,
    starter: "subprocess.Popen[bytes]",
    deadline: float,
    log: str,
) -> List[Node]:
    """Return the nodes, in the scheduler's order, which follows the network, once all have said
    what they have."""
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        ended = starter.poll() is not None
        present = set(_names(folder))
        names = [_introduction_file(index) for index in range(task.case.nodes)]
        said = [_read(folder, name) for name in names if name in present]
        nodes = [Node(introduction) for introduction in said if introduction]
        if len(nodes) == task.case.nodes:
            return nodes
        if ended:
            signals.await_own([starter.returncode])
            last_line = outcome.last_line(log)
            raise Missing(
                f"{_who_answered(task, nodes)}; the command that starts them ended with "
                f"status {starter.returncode}"
                + (f"; its last words: {last_line}" if last_line else "")
            )
        if time.monotonic() >= end:
            raise Missing(f"{_who_answered(task, nodes)} within {ANSWER_SECONDS:g} s")
        if time.monotonic() >= deadline:
            raise StartTimeout(
                f"the time limit of {task.request.time_limit:g} s was reached during: start; "
                f"{_who_answered(task, nodes)}"
            )
        time.sleep(_LOOK_SECONDS)


def _who_answered(task: Task, called: Sequence[Node]) -> str:
    """Return which nodes have answered, and which not, where the scheduler tells."""
    here = [node.name for node in called]
    missing = [name for name in _expected_nodes() if name not in here]
    which = f", not {', '.join(missing)}" if missing else ""
    return f"{len(here)} of {task.case.nodes} nodes answered ({', '.join(here) or 'none'}{which})"


def _expected_nodes() -> List[str]:
    """Return the names of the allocation's nodes; empty where SLURM does not tell.

    The query is by the job's number, because Snakemake removes most of SLURM's variables."""
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        return []
    asked = ["squeue", "--noheader", "--format=%N", f"--jobs={job}"]
    listed = command_output(asked, seconds=10)
    if not listed:
        return []
    shown = command_output(["scontrol", "show", "hostnames", listed.strip()], seconds=10)
    return (shown or "").split()


def check(task: Task, nodes: Sequence[Node]) -> None:
    """Raise Mismatch, naming the node, where one cannot do its share or differs from the first."""
    per_device = task.request.cores_per_device or 0
    needed = per_device * task.case.devices_per_node
    first = nodes[0]
    for node in nodes:
        introduction = node.introduction
        if introduction["wrong"]:
            raise Mismatch(f"node {node.name}: {introduction['wrong']}")
        if introduction["cores"] < needed:
            raise Mismatch(
                f"node {node.name}: {task.case.devices_per_node} device(s) of {per_device} core(s) "
                f"need {needed} cores; there are {introduction['cores']}"
            )
        if (
            task.request.accelerator == "cuda"
            and len(introduction["devices"]) < task.case.devices_per_node
        ):
            raise Mismatch(
                f"node {node.name}: {task.case.devices_per_node} GPU(s) are needed; "
                f"there are {len(introduction['devices'])}"
            )
        for subject, value_of in _COMPARED.items():
            own, expected = value_of(introduction), value_of(first.introduction)
            if own != expected:
                raise Mismatch(
                    f"node {node.name} has {subject} {_shown(own, expected)}, "
                    f"node {first.name} has {_shown(expected, own)}"
                )


#: Properties that must be the same on all nodes.
_COMPARED: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "Python": lambda introduction: introduction["python"],
    "packages": lambda introduction: introduction["packages"],
    "the processor": lambda introduction: introduction["hardware"]["cpu"],
    "the GPUs": lambda introduction: sorted(
        {gpu["name"] for gpu in introduction["hardware"]["gpus"]}
    ),
}


def _shown(value: Any, reference: Any) -> str:
    """Return what ``value`` has that ``reference`` has not."""
    if isinstance(value, dict):
        own = [
            f"{name} {version}"
            for name, version in sorted(value.items())
            if reference.get(name) != version
        ]
        return shorten(", ".join(own) or "none of these")
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return str(value)


def _read_result(node: Node, result: Optional[Dict[str, Any]]) -> None:
    """Store what a node says in the end."""
    if result is None:
        node.lost = "was lost"
        return
    node.asked = result["asked"]
    if "error" in result:
        node.lost = f"could not start its ranks: {result['error']}"
        return
    outcomes = [outcome.RankOutcome(*judged) for judged in result["outcomes"]]
    # Its ranks ended after those that made the scheduler end this node.
    node.outcomes = [each._replace(ended=math.inf) if node.asked else each for each in outcomes]
    node.watch, node.memory = result["watch"], result["memory"]


def _check_interrupted(nodes: Sequence[Node]) -> None:
    """Raise Interrupted if signals asked all nodes to end that did not end well: their job ends,
    and the signal to this process may come later. A failure asks the other nodes, too, but not its
    own."""
    ended = [node for node in nodes if not node.outcomes or not _is_good(node.outcomes)]
    if ended and all(node.asked for node in ended):
        raise Interrupted(ended[0].asked[0])


def _is_good(outcomes: Sequence[outcome.RankOutcome]) -> bool:
    return all(each.fields["status"] == "ok" for each in outcomes)


def _outcomes(task: Task, node: Node, index: int) -> List[outcome.RankOutcome]:
    if node.outcomes is not None:
        return node.outcomes
    first = index * task.case.devices_per_node
    ranks = range(first, first + task.case.devices_per_node)
    return [outcome.lost(rank, node.name, f"node {node.name} {node.lost}") for rank in ranks]


def _entry(node: Node) -> Dict[str, Any]:
    """Return a node's entry in the record."""
    entry = {key: node.introduction[key] for key in ("node", "interface", "hardware")}
    if node.memory is not None:
        entry["memory"] = node.memory
    if node.watch is not None:
        entry["watch"] = node.watch
    return entry


def _introduction_file(index: int) -> str:
    """Return the name of what a node says of itself."""
    return f"node{index}"


def _result_file(index: int) -> str:
    """Return the name of what a node says in the end."""
    return f"result{index}"


def _write(folder: str, name: str, content: Dict[str, Any]) -> None:
    """Write a file that appears complete. Raises OSError."""
    path = os.path.join(folder, name)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


def _names(folder: str) -> List[str]:
    """Return the names of the files. Raises OSError.

    A network file system shows files of other nodes up to a minute late, unless one has just
    changed the folder oneself."""
    handle, path = tempfile.mkstemp(prefix=".look", dir=folder)
    os.close(handle)
    os.unlink(path)
    return os.listdir(folder)


def _read(folder: str, name: str) -> Optional[Dict[str, Any]]:
    """Return the content of a file; None without it. Raises OSError, ValueError."""
    if name not in _names(folder):
        return None
    content: Dict[str, Any] = bounded.read_json(os.path.join(folder, name))
    return content


def _this_machine() -> str:
    """Return what tells this machine from others."""
    return f"{socket.gethostname()} {file_line('/proc/sys/kernel/random/boot_id')}"


def _own_address() -> str:
    """Return this node's address on the way to that of the launcher."""
    launcher = os.environ.get(_LAUNCHER)
    if launcher:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
            unsent.connect((launcher, 9))  # sends nothing
            return str(unsent.getsockname()[0])
    others = [address for name, address in interfaces.addresses().items() if name != "lo"]
    return [*others, "127.0.0.1"][0]


def _introduction(task: Task, common: Dict[str, str]) -> Dict[str, Any]:
    """Return what the launcher must know of this node before it assigns a share."""
    cores = cores_of.allowed()
    installed = packages.installed(packages.search_path(common, "/"))
    wrong = packages.wrong_environment(task.request.prefix, task.request.pins, installed)
    address = _own_address()
    return {
        "node": one_node.name(),
        "interface": interfaces.with_address(address),
        "addresses": launch.free_addresses(task.case.devices_per_node, address),
        "cores": len(cores),
        "python": platform.python_version(),
        "packages": installed,
        "hardware": hardware.hardware(cores),
        "devices": hardware.visible_gpus(common),
        "wrong": wrong or software.missing(task.request, common),
    }


def _take_part(task: Task, folder: str, index: int, launcher: str, asked: List[int]) -> bool:
    """Take part in the run, from introduction to result. Returns whether all went well.

    ``launcher``: its machine. ``asked``: signals that asked this process to end so far."""
    request = task.request
    cores_of.restrict(request.cores, control_groups.whole_cores())
    common = one_node.common_environment(request)
    introduced, devices = _introduction(task, common), one_node.Devices()
    with contextlib.ExitStack() as stack:
        # The launcher has locked its own machine.
        if not (introduced["wrong"] or launcher == _this_machine()):
            try:
                lock = machine_lock.held(one_node.owner(request), seconds=_BUSY_SECONDS)
                devices = one_node.Devices(stack.enter_context(lock)[0])
            except machine_lock.MachineLockError as error:
                introduced["wrong"] = str(error)
        _write(folder, _introduction_file(index), introduced)
        message = None
        while message is None and not asked:
            time.sleep(_AGENT_LOOK_SECONDS)
            message = _read(folder, _SHARES)
        if message is None:
            return False
        # A mark per node: where several nodes are one machine, each cleans up its own processes.
        first = index * task.case.devices_per_node
        share = launch.Share(f"{message['run']}-{index}", first, message["addresses"])
        deadline = time.monotonic() + message["seconds"]
        own = stack.enter_context(temporary_folder())
        node_result = one_node.run_ranks(task, share, own, deadline, common, asked, devices)
        # Monotonic times of this machine mean nothing on another.
        now, here = time.time(), time.monotonic()
        outcomes = [
            judged._replace(ended=now - (here - judged.ended)) for judged in node_result.outcomes
        ]
    left = {"outcomes": outcomes, "watch": node_result.watch, "memory": node_result.memory}
    _write(folder, _result_file(index), {**left, "asked": asked})
    return all(judged.fields["status"] == "ok" for judged in outcomes)


def main(folder: str) -> int:
    """Return the exit status: 0 if all went well, else another, at which ``srun`` ends the
    others."""
    asked: List[int] = []
    for number in signals.ENDING:
        signal.signal(number, lambda number, frame: asked.append(number))
    index = int(os.environ[_INDEX])
    try:
        request = _read(folder, _REQUEST) or {}
    except OSError as error:
        allowed = "an --output that all nodes see"
        print(
            f"node {one_node.name()}: {folder}: {error.strerror}; allowed: {allowed}",
            file=sys.stderr,
        )
        return 1
    try:
        task = task_of(parse(request["arguments"]))
        good = _take_part(task, folder, index, request["machine"], asked)
    except Exception as error:
        traceback.print_exc()
        _write(folder, _result_file(index), {"error": error_text(error), "asked": asked})
        return 1
    return 128 + asked[0] if asked else int(not good)
