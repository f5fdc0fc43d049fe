"""Run the ranks of one node: start, watch and judge them."""

from __future__ import annotations

import os
import socket
from argparse import Namespace
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from core import limits

from harness import cores as cores_of
from harness import hardware, own_model, variables
from harness.kind import Workload
from harness.processes import descendants, launch, outcome
from harness.processes.launch import ForkServer
from harness.watcher import Watcher, summary


class Devices(NamedTuple):
    """Locked devices of a run: the open ``files`` of the lock; for a run side by side with others,
    the uuid of its ``gpu``, and the number of GPUs that these runs share (``total``)."""

    files: Sequence[int] = ()
    gpu: str = ""
    total: int = 1


def name() -> str:
    """Return the scheduler's name of this node, else its own."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def elsewhere(requested: Optional[str]) -> str:
    """Return an error where the run must be on another node; "" otherwise."""
    here = name()
    if requested in (None, here):
        return ""
    return f"is on node {here}, not on the requested node {requested}"


def too_few_cores(workload: Workload, cores: int) -> str:
    """Return why the logical ``cores`` of this process are too few for the run; "" if not."""
    devices, per_device = workload.case.devices_per_node, workload.options.cores_per_device or 0
    needed = devices * per_device
    if needed <= cores:
        return ""
    return (
        f"{devices} device(s) of {per_device} core(s) need {needed} cores; this process may use "
        f"{cores}"
    )


def common_environment(options: Namespace) -> Dict[str, str]:
    """Return the variables that all ranks of this node share."""
    is_own = options.model is not None and own_model.is_own(options.model)
    keeps = [options.install_method, *([variables.OWN_MODEL] if is_own else [])]
    common = launch.common_environment(
        os.environ, keeps, options.accelerator, options.cores_per_device
    )
    common.update(options.variables)
    return common


def _cores_of_ranks(workload: Workload, cores: List[int], common: Dict[str, str]) -> Any:
    """Return the cores that each rank is pinned to: its device on a CPU, else cores near its
    GPU."""
    devices, per_device = workload.case.devices_per_node, workload.options.cores_per_device
    if per_device:
        return cores_of.deal(cores, devices, per_device)
    addresses = hardware.gpu_addresses(hardware.visible_gpus(common))
    if len(addresses) < devices:
        return [[] for _ in range(devices)]
    return cores_of.near_gpus(addresses, cores)[:devices]


def run_ranks(
    workload: Workload,
    share: launch.Share,
    folder: str,
    deadline: float,
    common: Dict[str, str],
    devices: Devices,
    forks: Optional[ForkServer] = None,
    asked: Sequence[int] = (),
) -> Tuple[List[outcome.RankOutcome], Dict[str, Any]]:
    """Start the ranks of ``share`` and wait for them. Return their outcomes, and entries of the
    record: the ``memory`` held and allowed, and ``watch``, the watcher's summary of the timed
    region, if there was one.

    ``folder``: temporary. ``deadline``: monotonic seconds. ``common``: variables of all ranks.
    ``forks``: starts the ranks as forks, None for new processes. ``asked``: signals received so
    far that ask this node, one of several, to end."""
    options, count = workload.options, workload.case.devices_per_node
    cores = cores_of.allowed()
    pinned = _cores_of_ranks(workload, cores, common)
    fewest = min(map(len, pinned)) or max(1, len(cores) // (count * devices.total))
    spec = {
        "workload": workload.to_json(),
        "threads": options.cores_per_device or fewest,
        "folder": folder,
        "node": name(),
    }
    kills_before = limits.oom_kills()
    used = [core for of_rank in pinned for core in of_rank] if options.cores_per_device else cores
    gpus = count if options.accelerator == "cuda" else 0
    limit = descendants.allowed_memory(options.memory_limit, 1 / devices.total)
    ranks: List[launch.RankProcess] = []
    with Watcher(used or cores, common, gpus) as watcher:
        try:
            launch.start_ranks(ranks, spec, share, pinned, common, devices.files, forks)
            apart = forks.pid if forks else None
            held = descendants.HeldMemory(limit, apart)
            meeting = outcome.Meeting(folder, workload.case, options.accelerator)
            outcome.watch(ranks, folder, deadline, held, meeting, apart, asked)
        finally:
            descendants.end(forks.pid if forks else None)
    out_of_memory = limits.oom_kills() != kills_before
    outcomes = [
        outcome.rank_outcome(rank, folder, name(), out_of_memory, options.time_limit)
        for rank in ranks
    ]
    seen = summary(watcher, [judged.fields for judged in outcomes])
    return outcomes, {"memory": held.fields(), **({} if seen is None else {"watch": seen})}
