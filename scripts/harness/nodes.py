"""Run over several nodes: ``srun`` starts an agent on each, which runs its share of the ranks.

Launcher and agents exchange files in a folder next to the output, on the file system that all nodes
share:

1. The launcher writes the request and starts the agents; each writes its node's properties.
2. Once all have, each checks that the nodes are alike and can do their share, and runs its ranks.
3. Each writes its result. ``srun`` ends the agents of all nodes once one of them fails or is lost.
4. The launcher reads the results.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from core import bounded, programs
from core.programs import Interrupted

from harness import cores as cores_of
from harness import hardware, provenance
from harness import node as one_node
from harness.adapter import Mismatch
from harness.command_line import START, parse
from harness.kind import Workload
from harness.output import partial, temporary_folder
from harness.processes import launch, machine_lock, outcome
from harness.processes.descendants import adopt_orphans, signal_when_parent_dies
from harness.report import error_text

#: First word of the harness's command line, before the folder, that makes it the agent of a node.
AGENT = "agent"
#: File names in the folder; files of a node end in its index.
_REQUEST, _INTRODUCTION, _RESULT = "request", "node", "result"
#: Variables of a SLURM step's process: the index of its node, and the address of the node that runs
#: ``srun``.
_INDEX, _LAUNCHER = "SLURM_NODEID", "SLURM_LAUNCH_NODE_IPADDR"

#: Seconds within which all nodes must answer. Early nodes keep their devices occupied until then.
ANSWER_SECONDS = 120.0
#: Seconds between an agent's checks of the folder.
_LOOK_SECONDS = 0.5
#: Seconds that a node may take to report after its own time limit.
_RESULT_SECONDS = 30.0
_LEAVE_SECONDS = 15.0
#: Seconds to wait for the lock of a node: two runs that each hold a node of the other would wait
#: for ever.
_BUSY_SECONDS = 60.0

#: Properties of a node, or the result of its ranks.
Answer = Dict[str, Any]


class Missing(Exception):
    """Raised where not all nodes take part; the message names those that do. ``status``: status of
    the run."""

    def __init__(self, reason: str, status: str = "failed") -> None:
        super().__init__(reason)
        self.status = status


def srun(nodes: int) -> List[str]:
    """Return the arguments that make a command run once on each of ``nodes`` nodes.

    ``srun`` ends it on all nodes once it fails on one. No cores are bound, because the harness pins
    its ranks itself; ``--mem=0`` gives the step all memory of the job."""
    count = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    return ["srun", *count, "--cpu-bind=none", "--mem=0", "--mpi=none", "--kill-on-bad-exit=1"]


def run_ranks(
    workload: Workload, run: str, deadline: float
) -> Tuple[List[outcome.RankOutcome], Dict[str, Any]]:
    """Return the outcomes of all ranks, and the entry of the record for ``nodes``.

    Raises Missing, Mismatch where the nodes are not alike, and Interrupted where nodes were asked
    to end."""
    options, count = workload.options, workload.case.nodes
    log = launch.log_with_name(options.log, "nodes")
    with _folder(options.output, run) as folder:
        # All nodes get the same output and log, also where the command line names none.
        arguments = [*options.arguments, "--output", options.output, "--log", options.log]
        seconds = deadline - time.monotonic()
        request = {"arguments": arguments, "machine": _this_machine()}
        _write(folder, _REQUEST, {**request, "seconds": seconds})
        with _started([*srun(count), *START, AGENT, folder], log) as starter:
            outcome.wait_for(starter, min(deadline, time.monotonic() + ANSWER_SECONDS))
            nodes = _introduced(workload, folder, starter, deadline, log)
            # Agents start to count their time limit later than this process.
            outcome.wait_for(starter, deadline + ANSWER_SECONDS + _RESULT_SECONDS)
            results = _read(folder, _RESULT, count)
    check(workload, nodes)
    outcomes = [
        _outcomes(workload, index, node["node"], result)
        for index, (node, result) in enumerate(zip(nodes, results))
    ]
    _check_interrupted(results, outcomes)
    entries = [
        {"node": node["node"], "hardware": node["hardware"], **(result or {}).get("entries", {})}
        for node, result in zip(nodes, results)
    ]
    return [judged for of_node in outcomes for judged in of_node], {"nodes": entries}


@contextlib.contextmanager
def _folder(output: str, run: str) -> Iterator[str]:
    """Yield the folder of the run next to its output."""
    folder = partial(output, f"{run}.nodes")
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(command: List[str], log: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield the process that starts the agents. It ends with this process, and has ended when the
    context ends."""
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
                outcome.wait_for(process, time.monotonic() + _LEAVE_SECONDS)


def _introduced(
    workload: Workload,
    folder: str,
    starter: "subprocess.Popen[bytes]",
    deadline: float,
    log: str,
) -> List[Answer]:
    """Return each node's properties, in the scheduler's order, which follows the network.
    Raises Missing."""
    count = workload.case.nodes
    nodes = [node for node in _read(folder, _INTRODUCTION, count) if node is not None]
    if len(nodes) == count:
        return nodes
    names = ", ".join(node["node"] for node in nodes) or "none"
    answered = f"{len(nodes)} of {count} nodes answered ({names})"
    if starter.poll() is not None:
        programs.await_own_signal([starter.returncode])
        last = outcome.last_line(log)
        raise Missing(
            f"{answered}; the command that starts them ended with status {starter.returncode}"
            + (f"; its last words: {last}" if last else "")
        )
    if time.monotonic() >= deadline:
        limit = f"the time limit of {workload.options.time_limit:g} s was reached during: start"
        raise Missing(f"{limit}; {answered}", "timeout")
    raise Missing(f"{answered} within {ANSWER_SECONDS:g} s")


def check(workload: Workload, nodes: Sequence[Answer]) -> None:
    """Raise Mismatch, naming the node, where one cannot do its share or differs from the first."""
    devices, first = workload.case.devices_per_node, nodes[0]
    for node in nodes:
        wrong = node["wrong"] or one_node.too_few_cores(workload, node["cores"])
        if not wrong and workload.options.accelerator == "cuda" and len(node["devices"]) < devices:
            wrong = f"needs {devices} GPU(s), has {len(node['devices'])}"
        if wrong:
            raise Mismatch(f"node {node['node']}: {wrong}")
        for subject, value_of in _COMPARED.items():
            own, expected = value_of(node), value_of(first)
            if own != expected:
                raise Mismatch(
                    f"node {node['node']} has {subject} {own or 'none'}, "
                    f"node {first['node']} has {expected or 'none'}"
                )


#: Properties that must be the same on all nodes.
_COMPARED: Dict[str, Callable[[Answer], str]] = {
    "the processor": lambda node: str(node["hardware"]["cpu"]),
    "the GPUs": lambda node: ", ".join(sorted({gpu["name"] for gpu in node["hardware"]["gpus"]})),
}


def _outcomes(
    workload: Workload, index: int, name: str, result: Optional[Answer]
) -> List[outcome.RankOutcome]:
    """Return the outcomes of a node's ranks from its result, if it wrote one."""
    if result is not None and "outcomes" in result:
        judged = [outcome.RankOutcome(*of_rank) for of_rank in result["outcomes"]]
        # If the scheduler ended this node, its ranks failed after the ranks that were the cause.
        return [each._replace(ended=math.inf) if result["asked"] else each for each in judged]
    lost = f"could not start its ranks: {result['error']}" if result else "was lost"
    first = index * workload.case.devices_per_node
    ranks = range(first, first + workload.case.devices_per_node)
    return [outcome.lost(rank, name, f"node {name} {lost}") for rank in ranks]


def _check_interrupted(
    results: Sequence[Optional[Answer]], outcomes: Sequence[Sequence[outcome.RankOutcome]]
) -> None:
    """Raise Interrupted if every node that did not end well was asked to end by a signal: then the
    job ends, and the signal to this process may come later. After a failure on one node, only the
    other nodes are asked to end."""
    asked: List[List[int]] = [
        result["asked"] if result else []
        for result, of_node in zip(results, outcomes)
        if not _is_good(of_node)
    ]
    if asked and all(asked):
        raise Interrupted(asked[0][0])


def _is_good(outcomes: Sequence[outcome.RankOutcome]) -> bool:
    return all(each.fields["status"] == "ok" for each in outcomes)


def _write(folder: str, name: str, content: Answer) -> None:
    """Write a file that appears complete. Raises OSError."""
    path = os.path.join(folder, name)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


def _read(folder: str, name: str, count: int) -> List[Optional[Answer]]:
    """Return the content of the file of each node; None without it. Raises OSError, ValueError.

    A network file system shows files of other nodes up to a minute late, unless this node has just
    changed the folder."""
    handle, path = tempfile.mkstemp(prefix=".look", dir=folder)
    os.close(handle)
    os.unlink(path)
    there = set(os.listdir(folder))
    names = [f"{name}{index}" for index in range(count)]
    return [
        bounded.read_json(os.path.join(folder, each)) if each in there else None for each in names
    ]


def _this_machine() -> str:
    """Return an identification of this machine."""
    return f"{socket.gethostname()} {hardware.file_line('/proc/sys/kernel/random/boot_id')}"


def _introduction(workload: Workload, common: Dict[str, str]) -> Answer:
    """Return the properties of this node that the launcher must know before it assigns a share."""
    options, cores = workload.options, cores_of.allowed()
    address = hardware.address_towards(os.environ[_LAUNCHER])
    installed = provenance.installed(common, "/")
    return {
        "node": one_node.name(),
        "addresses": launch.free_addresses(workload.case.devices_per_node, address),
        "cores": len(cores),
        "hardware": hardware.describe(cores),
        "devices": hardware.visible_gpus(common),
        "wrong": provenance.wrong_environment(options.prefix, options.pins, installed)
        or provenance.wrong_image(options.image, common),
    }


def _take_part(workload: Workload, folder: str, request: Answer, asked: List[int]) -> bool:
    """Take part in the run, from introduction to result. Returns whether all went well. Raises
    Mismatch where the nodes are not alike.

    ``asked``: signals that asked this process to end so far."""
    options, count = workload.options, workload.case.nodes
    deadline = time.monotonic() + request["seconds"]
    index = int(os.environ[_INDEX])
    cores_of.restrict(options.cores)
    common = one_node.common_environment(options)
    introduced, devices = _introduction(workload, common), one_node.Devices()
    with contextlib.ExitStack() as stack:
        # The launcher has locked its own machine.
        if not (introduced["wrong"] or request["machine"] == _this_machine()):
            try:
                owner = machine_lock.owner(options.output)
                lock = machine_lock.held(owner, seconds=_BUSY_SECONDS)
                devices = one_node.Devices(stack.enter_context(lock)[0])
            except machine_lock.MachineLockError as error:
                introduced["wrong"] = str(error)
        _write(folder, f"{_INTRODUCTION}{index}", introduced)
        nodes: List[Optional[Answer]] = [None]
        while None in nodes:
            if asked:
                return False
            time.sleep(_LOOK_SECONDS)
            nodes = _read(folder, _INTRODUCTION, count)
        known = [node for node in nodes if node is not None]
        check(workload, known)
        first = index * workload.case.devices_per_node
        addresses = [address for node in known for address in node["addresses"]]
        share = launch.Share(first, addresses)
        own = stack.enter_context(temporary_folder())
        outcomes, entries = one_node.run_ranks(
            workload, share, own, deadline, common, devices, asked=asked
        )
        # Monotonic times of this machine mean nothing on another.
        ahead = time.time() - time.monotonic()
        outcomes = [judged._replace(ended=judged.ended + ahead) for judged in outcomes]
    result = {"outcomes": outcomes, "entries": entries, "asked": asked}
    _write(folder, f"{_RESULT}{index}", result)
    return _is_good(outcomes)


def main(folder: str) -> int:
    """Return the exit status: 0 if all went well, else another, at which ``srun`` ends the
    others."""
    asked: List[int] = []
    adopt_orphans()
    for number in programs.ENDING_SIGNALS:
        signal.signal(number, lambda number, frame: asked.append(number))
    try:
        request: Answer = bounded.read_json(os.path.join(folder, _REQUEST))
    except OSError as error:
        where = f"node {one_node.name()}: {folder}: {error.strerror}"
        print(f"{where}; allowed: an --output that all nodes see", file=sys.stderr)
        return 1
    try:
        good = _take_part(parse(request["arguments"]), folder, request, asked)
    except Exception as error:
        traceback.print_exc()
        result = {"error": error_text(error), "asked": asked}
        _write(folder, f"{_RESULT}{os.environ[_INDEX]}", result)
        return 1
    return 128 + asked[0] if asked else int(not good)
