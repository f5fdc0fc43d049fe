"""Run over several nodes: an agent on each (:mod:`harness.nodes.agent`), started by ``srun``.

1. Write the request into a folder beside the output, and start the agents; wait until each has said
   what its node has.
2. Check that each can do its share and that they are alike; write who does what.
3. ``srun`` ends the agents of all nodes once one of them fails or is lost.
4. Read what the agents have left.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from core import signals
from core.srun import srun
from core.text import shorten

from harness.adapter import Mismatch
from harness.machine.sources import command_output
from harness.nodes import shared
from harness.nodes.agent import this_machine
from harness.output import partial
from harness.processes import launch, outcome
from harness.processes.cleanup import Interrupted
from harness.processes.parent_death import signal_when_parent_dies
from harness.request.declaration import Task

_HARNESS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_START_NODE = os.path.join(_HARNESS, "start_node.py")

#: Most seconds until all nodes have answered, which occupy their devices meanwhile.
ANSWER_SECONDS = 120.0
_LOOK_SECONDS = 0.2
#: Seconds that a node may take after its own time limit to say how it went.
_RESULT_SECONDS = 30.0
_LEAVE_SECONDS = 15.0


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
        request = {"arguments": list(arguments), "machine": this_machine()}
        shared.write(folder, shared.REQUEST, request)
        command = [*srun(task.case.nodes), sys.executable, _START_NODE, folder]
        with _started(command, log) as starter:
            nodes = _introduced(task, folder, starter, deadline, log)
            check(task, nodes)
            addresses = [address for node in nodes for address in node.introduction["addresses"]]
            shares = {"run": run, "addresses": addresses, "seconds": deadline - time.monotonic()}
            shared.write(folder, shared.SHARES, shares)
            launch.wait_for(starter, deadline + _RESULT_SECONDS)
            for index, node in enumerate(nodes):
                _read_result(node, shared.read(folder, shared.result(index)))
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
        present = set(shared.names(folder))
        names = [shared.introduction(index) for index in range(task.case.nodes)]
        said = [shared.read(folder, name) for name in names if name in present]
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
