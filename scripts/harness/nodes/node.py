"""What one node does in a run: it starts its ranks, watches them, and judges how they ended."""

from __future__ import annotations

import os
import socket
from typing import Any, Dict, List, NamedTuple, Optional

from harness import variables
from harness.adapter import Case
from harness.devices.lease import Lease
from harness.machine import allocator, control_groups, hardware
from harness.machine import cores as cores_of
from harness.messages.wire import Connection
from harness.processes import launch, memory, outcome
from harness.processes.log_files import LogKeeper
from harness.processes.private_network import Network
from harness.request import own_model
from harness.request.command_line import Request
from harness.request.declaration import Task
from harness.telemetry import watch_summary
from harness.telemetry.watcher import Watcher


class Share(NamedTuple):
    """What falls to one node: its ranks, from ``first_rank`` on, of those at ``addresses``
    (``host:port``, in rank order). ``run`` marks its processes; ``seconds`` are left for it."""

    run: str
    first_rank: int
    addresses: List[str]
    seconds: float


class Found(NamedTuple):
    """How the ranks of a node ended, what its watcher saw in the timed window (None if there was
    none), and the memory that they held and might hold."""

    outcomes: List[outcome.RankOutcome]
    watch: Optional[Dict[str, Any]]
    memory: Dict[str, int]


def name() -> str:
    """What the scheduler calls this node; else what it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def elsewhere(asked: Optional[str]) -> str:
    """What is wrong where a run is to be on one node and finds itself on another; "" where not."""
    here = name()
    if asked in (None, here):
        return ""
    return f"is on node {here}, not on {asked}, which was asked for"


def common_environment(request: Request) -> Dict[str, str]:
    """The variables that all ranks of this node share."""
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
    """Return the names of what ranks do not get of the caller's environment."""
    given = {name for name, _ in request.variables}
    return sorted(set(variables.dropped(os.environ, _keeps(request))) - given)


def _keeps(request: Request) -> List[str]:
    """Return what decides, besides the list, about variables of the caller."""
    is_own = request.model is not None and own_model.is_own(request.model)
    return [request.way, *([variables.OWN_MODEL] if is_own else [])]


def _cores_of_ranks(
    request: Request, case: Case, cores: List[int], common: Dict[str, str]
) -> List[List[int]]:
    """Those that each rank is pinned to: on a CPU they are its device; the rank of a GPU gets some
    that are near to it."""
    if request.cores_per_device:
        return cores_of.deal(cores, case.devices_per_node, request.cores_per_device)
    visible = hardware.visible_gpus(common)[: case.devices_per_node]
    addresses = hardware.gpu_addresses(visible)
    if len(addresses) < case.devices_per_node:
        return [[] for _ in range(case.devices_per_node)]
    return cores_of.near_gpus(addresses, cores)


def run_ranks(
    task: Task,
    share: Share,
    folder: str,
    deadline: float,
    common: Dict[str, str],
    link: Optional[Connection] = None,
    lease: Optional[Lease] = None,
    network: Optional[Network] = None,
) -> Found:
    """Start the ranks of ``share``, wait for them, judge them. ``folder``: temporary; ``deadline``
    in monotonic seconds; ``common``: the variables of all ranks; ``link``: to whoever tells this
    node that a rank has failed on another, None where there is no other; ``lease``: the devices of
    the ranks, None for the first of the node; ``network``: of their own, None for that of all."""
    request, case = task.request, task.case
    cores = cores_of.allowed()
    per_device = request.cores_per_device
    pinned = lease.places if lease else _cores_of_ranks(request, case, cores, common)
    all_devices = lease.of if lease else case.devices_per_node
    fewest = min(len(own) for own in pinned) or max(1, len(cores) // all_devices)
    spec = {
        "kind": request.kind,
        "kinds": request.kinds,
        "framework_folder": request.framework,
        "workload": dict(vars(task.workload), case=case._asdict()),
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
    used = (lease.cores if lease else dealt) or cores
    part = case.devices_per_node / all_devices
    gpus = case.devices_per_node if request.accelerator == "cuda" else 0
    may = memory.allowed(request.memory_limit, request.spare_memory, part, request.node_memory)
    held = memory.Memory(share.run, os.getpid(), may, len(used), request.spare_memory)
    with LogKeeper() as keeper, Watcher(share.run, used, common, gpus) as watcher:
        ranks = launch.start_ranks(
            spec,
            range(share.first_rank, share.first_rank + case.devices_per_node),
            share.addresses,
            pinned,
            common,
            share.run,
            request.log,
            keeper,
            lease.files if lease else (),
            network.enter if network else None,
        )
        launch.watch(ranks, folder, deadline, held, link)
    out_of_memory = control_groups.oom_kills() != kills_before
    outcomes = [
        outcome.rank_outcome(rank, folder, name(), out_of_memory, request.time_limit)
        for rank in ranks
    ]
    seen = watch_summary.of(watcher, [judged.fields for judged in outcomes])
    return Found(outcomes, seen, held.fields())
