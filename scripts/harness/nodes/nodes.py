"""Run over several nodes: an agent on each gets its orders from here.

The agents are :mod:`harness.nodes.agent`.

1. Listen, and have the given command start an agent on every node; wait until all have connected.
2. Check that each can do its share and that they are alike; send each its ranks and all addresses.
3. A failed rank, or a lost node, ends the ranks on all nodes.
4. Collect the nodes' results.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from core import signals
from core.text import shorten

from harness.adapter import Mismatch
from harness.machine import interfaces
from harness.machine.sources import command_output
from harness.messages import handshake, wire
from harness.nodes.agent import LAUNCHER_VARIABLE, TOKEN_VARIABLE
from harness.nodes.node import NodeResult, Share
from harness.processes import outcome
from harness.processes.cleanup import Interrupted
from harness.processes.log_files import LogKeeper
from harness.request.declaration import Task

_HARNESS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_START_NODE = os.path.join(_HARNESS, "start_node.py")

#: Most seconds for all nodes to connect; while one is missing, the others occupy their devices.
CALL_SECONDS = 120.0
#: Seconds that a node may take after its own time limit to report its result.
_ANSWER_SECONDS = 30.0
_LEAVE_SECONDS = 15.0
#: Most unverified connections at a time; beyond it the oldest is closed.
_MOST_CALLERS = 128


class Missing(Exception):
    """Raised where not all nodes take part; the message names them."""


class StartTimeout(Exception):
    """Raised where the time limit is reached before all nodes have connected."""


@dataclass
class Node:
    """Node of the run: its introduction and, at the end, its result or the reason for none, with
    the number of the signal that asked it to end."""

    link: wire.Connection
    introduction: Dict[str, Any]
    result: Optional[NodeResult] = None
    lost: Optional[str] = None
    signal: Optional[int] = None

    @property
    def name(self) -> str:
        return str(self.introduction["node"])


def run_ranks(
    task: Task, run: str, deadline: float, arguments: Sequence[str], nodes_log: str
) -> Tuple[List[outcome.RankOutcome], List[Dict[str, Any]]]:
    """Return the outcomes of all ranks, and an entry of the record for each node.

    ``arguments``: command line of this launcher. Raises Missing, StartTimeout, and Mismatch where
    the nodes are not alike, and Interrupted where nodes were asked to end."""
    with _listening() as (listener, addresses), LogKeeper() as log:
        token = handshake.new_token()
        python = shlex.quote(sys.executable)
        start = str(task.request.start_nodes).format(nodes=task.case.nodes, python=python)
        command = [
            *shlex.split(start),
            sys.executable,
            _START_NODE,
            *arguments,
        ]
        variables = {LAUNCHER_VARIABLE: ",".join(addresses), TOKEN_VARIABLE: token}
        with _started(command, {**os.environ, **variables}, log, nodes_log) as starter:
            called: List[Node] = []
            try:
                _wait_for_calls(task, called, listener, token, starter, deadline, log, nodes_log)
                listener.close()  # all are there: nobody else has anything to say
                nodes = _in_order(called)
                check(task, nodes)
                _tell_shares(task, run, nodes, deadline)
                _wait_for_results(nodes, deadline)
                _check_interrupted(nodes)
            finally:
                for node in called:
                    node.link.close()
    entries = [_entry(node) for node in nodes]
    return [
        judged for index, node in enumerate(nodes) for judged in _outcomes(task, node, index)
    ], entries


@contextlib.contextmanager
def _listening() -> Iterator[Tuple[socket.socket, List[str]]]:
    """Yield a listening socket and the addresses at which it may be reached.

    They are the host's name and those of its interfaces, for names that others cannot resolve."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen(128)
        listener.setblocking(False)
        port = listener.getsockname()[1]
        own = interfaces.addresses()
        hosts = [address for name, address in own.items() if name != "lo"]
        hosts += [socket.gethostname(), "127.0.0.1"]
        yield listener, [f"{host}:{port}" for host in hosts]


@contextlib.contextmanager
def _started(
    command: List[str], variables: Dict[str, str], keeper: LogKeeper, log: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield the process that starts the agents. It has ended on exit."""
    output = keeper.open(log)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
        )
    finally:
        os.close(output)
    keeper.start()
    try:
        yield process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_SECONDS)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for_calls(
    task: Task,
    called: List[Node],
    listener: socket.socket,
    token: str,
    starter: "subprocess.Popen[bytes]",
    deadline: float,
    keeper: LogKeeper,
    log: str,
) -> None:
    end = time.monotonic() + CALL_SECONDS
    callers: List[handshake.Caller] = []  # strangers, for all that is known of them
    proved: List[wire.Connection] = []  # nodes that have not introduced themselves yet
    try:
        while len(called) < task.case.nodes:
            if starter.poll() is not None:
                signals.await_own([starter.returncode])
                keeper.flush()
                last_line = outcome.last_line(log)
                raise Missing(
                    f"{_who_answered(task, called)}; the command that starts them ended with "
                    f"status {starter.returncode}"
                    + (f"; its last words: {last_line}" if last_line else "")
                )
            if time.monotonic() >= end:
                raise Missing(f"{_who_answered(task, called)} within {CALL_SECONDS:g} s")
            if time.monotonic() >= deadline:
                raise StartTimeout(
                    f"the time limit of {task.request.time_limit:g} s was reached during: start; "
                    f"{_who_answered(task, called)}"
                )
            sources: List[Any] = [listener, *callers, *proved]
            readable, _, _ = select.select(sources, [], [], 0.5)
            for link in [link for link in proved if link in readable]:
                _introduce(link, proved, called)
            for caller in [caller for caller in callers if caller in readable or caller.is_late]:
                _check_proof(caller, callers, proved)
            if listener in readable:
                with contextlib.suppress(OSError):  # it has hung up already
                    callers.append(handshake.Caller(listener.accept()[0], token))
                if len(callers) > _MOST_CALLERS:
                    callers.pop(0).close()
    finally:
        for caller in callers:
            caller.close()
        for link in proved:
            link.close()


def _check_proof(
    caller: handshake.Caller, callers: List[handshake.Caller], proved: List[wire.Connection]
) -> None:
    """Take in what a caller sent so far, and add it to ``proved`` if it is a node of this run."""
    try:
        if not caller.proved():
            return
        proved.append(caller.connection())
    except wire.Closed:
        caller.close()
    callers.remove(caller)


def _introduce(link: wire.Connection, proved: List[wire.Connection], called: List[Node]) -> None:
    """Store the introduction of a node."""
    try:
        messages = link.received()
    except (wire.Closed, ValueError):
        proved.remove(link)
        link.close()
        return
    if messages:
        proved.remove(link)
        called.append(Node(link, messages[0]))


def _who_answered(task: Task, called: Sequence[Node]) -> str:
    """Return which nodes have connected, and which not, where the scheduler tells."""
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


def _in_order(called: Sequence[Node]) -> List[Node]:
    """Return the nodes by the scheduler's number, which follows the network; else by name."""
    return sorted(
        called,
        key=lambda n: (n.introduction["index"] is None, n.introduction["index"] or 0, n.name),
    )


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


def _tell_shares(task: Task, run: str, nodes: Sequence[Node], deadline: float) -> None:
    addresses = [address for node in nodes for address in node.introduction["addresses"]]
    for index, node in enumerate(nodes):
        share = Share(
            # A name per node: where several nodes are one machine, a node that cleans up must end
            # its own processes alone.
            run=f"{run}-{index}",
            first_rank=index * task.case.devices_per_node,
            addresses=addresses,
            seconds=max(0.0, deadline - time.monotonic()),
        )
        with contextlib.suppress(wire.Closed):  # the next look at its connection tells
            node.link.send(share._asdict())


def _wait_for_results(nodes: Sequence[Node], deadline: float) -> None:
    end = deadline + _ANSWER_SECONDS
    while True:
        waiting = [node for node in nodes if node.result is None and node.lost is None]
        if not waiting:
            return
        left = end - time.monotonic()
        if left <= 0:
            for node in waiting:
                node.lost = f"did not say how it went within {_ANSWER_SECONDS:g} s"
            return
        readable, _, _ = select.select([node.link for node in waiting], [], [], left)
        for node in waiting:
            if node.link in readable and _hear(node):
                _stop(nodes)


def _hear(node: Node) -> bool:
    """Store a node's message. Returns whether it ends the ranks of the other nodes."""
    try:
        messages = node.link.received()
    except (wire.Closed, ValueError) as error:
        node.lost = f"was lost: {error}"
        return True
    ends = False
    for message in messages:
        if "outcomes" in message:
            outcomes = [outcome.RankOutcome(*judged) for judged in message["outcomes"]]
            node.result = NodeResult(outcomes, message["watch"], message["memory"])
        elif "error" in message:
            node.lost = f"could not start its ranks: {message['error']}"
            ends = True
        elif "interrupted" in message:
            node.signal = int(message["interrupted"])
            node.lost = f"was interrupted by signal {outcome.signal_name(node.signal)}"
            ends = True
        else:
            ends = ends or bool(message.get("failed"))
    return ends


def _check_interrupted(nodes: Sequence[Node]) -> None:
    """Raise Interrupted if signals asked all lost nodes to end: their job ends, and the signal to
    this process may come later. A starter also ends the other nodes of one that was killed."""
    numbers = [node.signal for node in nodes if node.lost is not None]
    if numbers and numbers[0] is not None and None not in numbers:
        raise Interrupted(numbers[0])


def _stop(nodes: Sequence[Node]) -> None:
    for node in nodes:
        if node.result is None and node.lost is None:
            with contextlib.suppress(wire.Closed):
                node.link.send({"stop": True})


def _outcomes(task: Task, node: Node, index: int) -> List[outcome.RankOutcome]:
    if node.result is not None:
        return list(node.result.outcomes)
    first = index * task.case.devices_per_node
    ranks = range(first, first + task.case.devices_per_node)
    return [outcome.lost(rank, node.name, f"node {node.name} {node.lost}") for rank in ranks]


def _entry(node: Node) -> Dict[str, Any]:
    """Return a node's entry in the record."""
    introduction = node.introduction
    entry = {key: introduction[key] for key in ("node", "interface", "hardware")}
    if node.result is not None:
        entry["memory"] = node.result.memory
        if node.result.watch is not None:
            entry["watch"] = node.result.watch
    return entry
