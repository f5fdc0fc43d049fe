"""A run over several nodes: an agent on each, which hears from here what to do.

The agents are :mod:`harness.nodes.agent`.

1. Listen, and have the given command start an agent on every node; wait until all have called.
2. Check that each can do its share and that they are alike; tell each its ranks and all addresses.
3. A rank that fails, and a node that is lost, ends the ranks on all of them.
4. Collect what the nodes found.
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

from harness.adapter import Mismatch
from harness.machine import interfaces
from harness.messages import handshake, wire
from harness.messages.report import shorten
from harness.nodes.agent import LAUNCHER_VARIABLE, TOKEN_VARIABLE
from harness.nodes.node import Found, Share
from harness.processes import outcome
from harness.processes.log_files import LogKeeper
from harness.request.declaration import Task

_HARNESS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_START_NODE = os.path.join(_HARNESS, "start_node.py")

#: How long all nodes may take to call, at most: where one is missing, the others hold the devices.
_CALL_SECONDS = 120.0
#: How long a node may take, behind its own time limit, to say how it went.
_ANSWER_SECONDS = 30.0
_LEAVE_SECONDS = 15.0
#: Who may be on the line at a time without having proved to be a node; then the oldest has to go.
_MOST_CALLERS = 128


class Missing(Exception):
    """Not all nodes take part; the message names them."""


@dataclass
class Node:
    """One node of the run: what it said of itself and, at the end, what it found or why not."""

    link: wire.Connection
    introduction: Dict[str, Any]
    found: Optional[Found] = None
    lost: Optional[str] = None

    @property
    def name(self) -> str:
        return str(self.introduction["node"])


def run_ranks(
    task: Task, run: str, deadline: float, arguments: Sequence[str], nodes_log: str
) -> Tuple[List[outcome.RankOutcome], List[Dict[str, Any]]]:
    """How all ranks ended, and an entry of the record for each node. ``arguments``: the command
    line of this launcher. Raises Missing, and Mismatch where the nodes are not alike."""
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
        own = {LAUNCHER_VARIABLE: ",".join(addresses), TOKEN_VARIABLE: token}
        with _started(command, {**os.environ, **own}, log, nodes_log) as starter:
            called: List[Node] = []
            try:
                _wait_for_calls(task, called, listener, token, starter, deadline, log, nodes_log)
                listener.close()  # all are there: nobody else has anything to say
                nodes = _in_order(called)
                check(task, nodes)
                _tell_shares(task, run, nodes, deadline)
                _wait_for_results(nodes, deadline)
            finally:
                for node in called:
                    node.link.close()
    entries = [_entry(node) for node in nodes]
    return [
        judged for place, node in enumerate(nodes) for judged in _outcomes(task, node, place)
    ], entries


@contextlib.contextmanager
def _listening() -> Iterator[Tuple[socket.socket, List[str]]]:
    """A listening socket, and the addresses at which it may be reached: by the host's name, and by
    those of its interfaces, for a name that others cannot resolve."""
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
    """The process that starts the agents. On the way out it has ended."""
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
    end = min(deadline, time.monotonic() + _CALL_SECONDS)
    callers: List[handshake.Caller] = []  # strangers, for all that is known of them
    proved: List[wire.Connection] = []  # nodes that have not introduced themselves yet
    try:
        while len(called) < task.case.nodes:
            if starter.poll() is not None:
                keeper.flush()
                words = outcome.last_line(log)
                raise Missing(
                    f"{_who_answered(task, called)}; the command that starts them ended with "
                    f"status {starter.returncode}" + (f"; its last words: {words}" if words else "")
                )
            if time.monotonic() >= end:
                raise Missing(f"{_who_answered(task, called)} within {_CALL_SECONDS:g} s")
            sources: List[Any] = [listener, *callers, *proved]
            readable, _, _ = select.select(sources, [], [], 0.5)
            for link in [link for link in proved if link in readable]:
                _introduce(link, proved, called)
            for caller in [one for one in callers if one in readable or one.is_late]:
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
    """Whether one of the ``callers`` is a node of this run, as far as it has said by now."""
    try:
        if not caller.proved():
            return
        proved.append(caller.connection())
    except wire.Closed:
        caller.close()
    callers.remove(caller)


def _introduce(link: wire.Connection, proved: List[wire.Connection], called: List[Node]) -> None:
    """Take in what a node says of itself."""
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
    """And who did not, where the scheduler tells which nodes there should be."""
    here = [node.name for node in called]
    missing = [name for name in _expected_nodes() if name not in here]
    which = f", not {', '.join(missing)}" if missing else ""
    return f"{len(here)} of {task.case.nodes} nodes answered ({', '.join(here) or 'none'}{which})"


def _expected_nodes() -> List[str]:
    """The names of the allocation's nodes; empty where SLURM does not tell. Asked by the job's
    number, because Snakemake takes most of SLURM's variables away."""
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        return []
    listed = _told("squeue", "--noheader", "--format=%N", f"--jobs={job}")
    return _told("scontrol", "show", "hostnames", listed.strip()).split() if listed else []


def _told(*command: str) -> str:
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=10,
            universal_newlines=True,
            encoding="utf-8",
            errors="replace",
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _in_order(called: Sequence[Node]) -> List[Node]:
    """By the scheduler's number of the node, which follows the network; else by name."""
    return sorted(
        called,
        key=lambda n: (n.introduction["index"] is None, n.introduction["index"] or 0, n.name),
    )


def check(task: Task, nodes: Sequence[Node]) -> None:
    """Raises Mismatch, naming the node, where one cannot do its share or is not like the first."""
    per_device = task.request.cores_per_device or 0
    needed = per_device * task.case.devices_per_node
    first = nodes[0]
    for node in nodes:
        told = node.introduction
        if told["wrong"]:
            raise Mismatch(f"node {node.name}: {told['wrong']}")
        if told["cores"] < needed:
            raise Mismatch(
                f"node {node.name}: {task.case.devices_per_node} device(s) of {per_device} core(s) "
                f"need {needed} cores; there are {told['cores']}"
            )
        if task.request.accelerator == "cuda" and len(told["devices"]) < task.case.devices_per_node:
            raise Mismatch(
                f"node {node.name}: {task.case.devices_per_node} GPU(s) are needed; "
                f"there are {len(told['devices'])}"
            )
        for what, of in _COMPARED.items():
            if of(told) != of(first.introduction):
                raise Mismatch(
                    f"node {node.name} has {what} {_shown(of(told), of(first.introduction))}, "
                    f"node {first.name} has {_shown(of(first.introduction), of(told))}"
                )


#: What must be the same on all nodes.
_COMPARED: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "Python": lambda told: told["python"],
    "packages": lambda told: told["packages"],
    "the processor": lambda told: told["hardware"]["cpu"],
    "the GPUs": lambda told: sorted({gpu["name"] for gpu in told["hardware"]["gpus"]}),
}


def _shown(one: Any, other: Any) -> str:
    """What ``one`` has that ``other`` has not."""
    if isinstance(one, dict):
        own = [
            f"{name} {version}"
            for name, version in sorted(one.items())
            if other.get(name) != version
        ]
        return shorten(", ".join(own) or "none of these")
    if isinstance(one, list):
        return ", ".join(one) or "none"
    return str(one)


def _tell_shares(task: Task, run: str, nodes: Sequence[Node], deadline: float) -> None:
    addresses = [address for node in nodes for address in node.introduction["addresses"]]
    for place, node in enumerate(nodes):
        share = Share(
            # Of its own, so that a node that cleans up ends its own processes and no others where
            # several nodes are one machine.
            run=f"{run}-{place}",
            first_rank=place * task.case.devices_per_node,
            addresses=addresses,
            seconds=max(0.0, deadline - time.monotonic()),
        )
        with contextlib.suppress(wire.Closed):  # the next look at its connection tells
            node.link.send(share._asdict())


def _wait_for_results(nodes: Sequence[Node], deadline: float) -> None:
    end = deadline + _ANSWER_SECONDS
    while True:
        waiting = [node for node in nodes if node.found is None and node.lost is None]
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
    """Take in what a node says. Whether that means the end for the ranks of the others."""
    try:
        messages = node.link.received()
    except (wire.Closed, ValueError) as error:
        node.lost = f"was lost: {error}"
        return True
    ends = False
    for message in messages:
        if "outcomes" in message:
            outcomes = [outcome.RankOutcome(*judged) for judged in message["outcomes"]]
            node.found = Found(outcomes, message["watch"], message["memory"])
        elif "error" in message:
            node.lost = f"could not start its ranks: {message['error']}"
            ends = True
        else:
            ends = ends or bool(message.get("failed"))
    return ends


def _stop(nodes: Sequence[Node]) -> None:
    for node in nodes:
        if node.found is None and node.lost is None:
            with contextlib.suppress(wire.Closed):
                node.link.send({"stop": True})


def _outcomes(task: Task, node: Node, place: int) -> List[outcome.RankOutcome]:
    if node.found is not None:
        return list(node.found.outcomes)
    first = place * task.case.devices_per_node
    ranks = range(first, first + task.case.devices_per_node)
    return [outcome.lost(rank, node.name, f"node {node.name} {node.lost}") for rank in ranks]


def _entry(node: Node) -> Dict[str, Any]:
    """A node's entry in the record."""
    told = node.introduction
    entry = {key: told[key] for key in ("node", "interface", "hardware")}
    if node.found is not None:
        entry["memory"] = node.found.memory
        if node.found.watch is not None:
            entry["watch"] = node.found.watch
    return entry
