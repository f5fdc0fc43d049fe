"""Run the ranks of one node: start, watch and judge them."""

from __future__ import annotations

import os
import pwd
import socket
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from core import control_groups

from harness import variables
from harness.adapter import Case
from harness.machine import allocator, hardware
from harness.machine import cores as cores_of
from harness.processes import launch, memory, outcome
from harness.processes.fork_server import ForkServer
from harness.request import own_model
from harness.request.command_line import Request
from harness.request.declaration import Task
from harness.telemetry import watch_summary
from harness.telemetry.watcher import Watcher


class Devices(NamedTuple):
    """Locked devices of a run: the open ``files`` of the lock; for a run side by side with others,
    the uuid of its ``gpu``, which is one of ``total`` that they share."""

    files: Sequence[int] = ()
    gpu: str = ""
    total: int = 1


class NodeResult(NamedTuple):
    """Outcomes of a node's ranks, the watcher's summary of the timed region (None if there was
    none), and the memory held and allowed."""

    outcomes: List[outcome.RankOutcome]
    watch: Optional[Dict[str, Any]]
    memory: Dict[str, int]


def name() -> str:
    """Return the scheduler's name of this node, else its own."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def owner(request: Request) -> str:
    """Return the text by which those who wait for this run's devices know it."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"process {os.getpid()} of {user}, which measures {os.path.abspath(request.output)}"


def elsewhere(requested: Optional[str]) -> str:
    """Return an error where the run must be on another node; "" otherwise."""
    here = name()
    if requested in (None, here):
        return ""
    return f"is on node {here}, not on {requested}, which was asked for"


def common_environment(request: Request) -> Dict[str, str]:
    """Return the variables that all ranks of this node share."""
    common = launch.common_environment(
        os.environ,
        _keeps(request),
        request.accelerator,
        request.cores_per_device,
    )
    common.update(request.variables)
    common.update(allocator.variables(request.preload, request.huge_pages, common))
    return common


def dropped_variables(request: Request) -> List[str]:
    """Return the names of the caller's variables that ranks do not get."""
    requested = {name for name, _ in request.variables}
    return sorted(set(variables.dropped(os.environ, _keeps(request))) - requested)


def _keeps(request: Request) -> List[str]:
    """Return the names that decide, besides the list, about the caller's variables."""
    is_own = request.model is not None and own_model.is_own(request.model)
    return [request.install_method, *([variables.OWN_MODEL] if is_own else [])]


def _cores_of_ranks(
    request: Request, case: Case, cores: List[int], common: Dict[str, str]
) -> List[List[int]]:
    """Return the cores that each rank is pinned to: its device on a CPU, else cores near its
    GPU."""
    if request.cores_per_device:
        return cores_of.deal(cores, case.devices_per_node, request.cores_per_device)
    visible = hardware.visible_gpus(common)[: case.devices_per_node]
    addresses = hardware.gpu_addresses(visible)
    if len(addresses) < case.devices_per_node:
        return [[] for _ in range(case.devices_per_node)]
    return cores_of.near_gpus(addresses, cores)


def run_ranks(
    task: Task,
    share: launch.Share,
    folder: str,
    deadline: float,
    common: Dict[str, str],
    asked: Sequence[int] = (),
    devices: Devices = Devices(),  # noqa: B008
    forks: Optional[ForkServer] = None,
) -> NodeResult:
    """Start the ranks of ``share``, wait for them, and judge them.

    ``folder``: temporary. ``deadline``: monotonic seconds. ``common``: variables of all ranks.
    ``asked``: signals so far that ask a node of several to end. ``forks``: starts the ranks as
    forks, None for new processes."""
    request, case = task.request, task.case
    cores = cores_of.allowed()
    per_device = request.cores_per_device
    pinned = _cores_of_ranks(request, case, cores, common)
    sharing = case.devices_per_node * devices.total
    fewest = min(len(own) for own in pinned) or max(1, len(cores) // sharing)
    spec = {
        "kind": request.kind,
        "workload": dict(vars(task.workload), case=case._asdict()),
        "kinds": request.kinds,
        "framework_folder": request.framework,
        "accelerator": request.accelerator,
        "threads": per_device or fewest,
        "seed": request.seed,
        "folder": folder,
        "node": name(),
        "preload": common["LD_PRELOAD"] if request.preload else None,
        "huge_pages": request.huge_pages,
    }
    kills_before = control_groups.oom_kills()
    dealt = [core for place in pinned for core in place] if per_device else []
    used = dealt or cores
    part = 1 / devices.total
    gpus = case.devices_per_node if request.accelerator == "cuda" else 0
    limit = memory.allowed(request.memory_limit, request.spare_memory, part)
    held = memory.HeldMemory(share.run, os.getpid(), limit)
    ranks: List[launch.RankProcess] = []
    with Watcher(share.run, used, common, gpus) as watcher:
        try:
            launch.start_ranks(
                ranks,
                spec,
                share,
                pinned,
                common,
                request.log,
                devices.files,
                forks,
            )
            launch.watch(share.run, ranks, folder, deadline, held, asked)
        finally:
            launch.end(share.run, ranks)
    out_of_memory = control_groups.oom_kills() != kills_before
    outcomes = [
        outcome.rank_outcome(rank, folder, name(), out_of_memory, request.time_limit)
        for rank in ranks
    ]
    seen = watch_summary.summary(watcher, [judged.fields for judged in outcomes])
    return NodeResult(outcomes, seen, held.fields())
