"""One run from the command line to its record. This process never imports a framework."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
import uuid
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from core import control_groups, precisions
from core.text import shorten

from harness import output, search, variables
from harness.adapter import Mismatch, Unsupported
from harness.kind import Kind, SearchKind, TargetMissed, Workload, combined
from harness.machine import allocator, hardware
from harness.machine import cores as cores_of
from harness.machine.processor import processor
from harness.measuring.checks import check_batches
from harness.messages.report import error_text
from harness.nodes import node, nodes
from harness.processes import launch, machine_lock, outcome
from harness.processes.cleanup import Interrupted, signals_raise, temporary_folder
from harness.processes.fork_server import ForkServer
from harness.processes.parent_death import PARENT_VARIABLE, signal_when_parent_dies
from harness.provenance import computation, environment, packages, scheduler, software
from harness.record import record
from harness.record.schema import SchemaError, record_schema
from harness.request import declaration
from harness.request.command_line import Request, as_typed, each_check, parse
from harness.request.options import SKIP
from harness.variables import recorded

#: Advice where all ranks have the same batch of a user's model.
_OWN_BATCHES = (
    "; make must draw it with the framework's own random numbers, which are seeded for each"
)

_CANNOT_DO = 2
_CANNOT_WRITE = 3


@dataclass(frozen=True)
class Setup:
    """State before the ranks start."""

    task: declaration.Task
    schema: Dict[str, Any]  # of the record
    run: str  # unique id
    folder: str  # temporary, for the ranks
    deadline: float  # monotonic seconds
    command: List[str]  # that repeats this run
    cores: List[int]  # that this process might use when it started
    common: Dict[str, str]  # variables of all ranks
    devices: node.Devices
    forks: Optional[ForkServer]  # None: each rank is a new process


def run_ranks(setup: Setup, arguments: Sequence[str]) -> record.Measured:
    """Start the ranks, wait for them, and judge them."""
    task = setup.task
    case = task.case
    node_result: Optional[node.NodeResult] = None
    entries: List[Dict[str, Any]] = []
    if case.nodes == 1:
        addresses = launch.free_addresses(case.devices)
        share = launch.Share(setup.run, 0, addresses)
        node_result = node.run_ranks(
            task,
            share,
            setup.folder,
            setup.deadline,
            setup.common,
            (),
            setup.devices,
            setup.forks,
        )
        outcomes = node_result.outcomes
    else:
        outcomes, entries = nodes.run_ranks(task, setup.run, setup.deadline, arguments)
    status, reason = outcome.most_telling(outcomes)
    measured = judged(task, status, reason, [rank_outcome.fields for rank_outcome in outcomes])
    if node_result is None:
        return replace(measured, nodes=entries)
    return replace(measured, watch=node_result.watch, memory=node_result.memory)


def judged(
    task: declaration.Task, status: str, reason: str, ranks: List[Dict[str, Any]]
) -> record.Measured:
    """Return the result of ranks, which are compared with each other and with the request."""
    metrics: Dict[str, Optional[float]] = {}
    if status == "ok":
        try:
            check(task, ranks)
            metrics = metrics_of(task.kind, task.workload, ranks)
        except Mismatch as mismatch:
            status, reason = "failed", error_text(mismatch)
        except TargetMissed as missed:
            status, reason = "not_converged", shorten(str(missed))
    return record.Measured(status, reason, ranks, metrics=metrics)


def check(task: declaration.Task, ranks: List[Dict[str, Any]]) -> None:
    """Compare what the ranks of a successful run left with each other, and with the request. Raises
    Mismatch, TargetMissed."""
    own = "own" in task.workload.model_config
    check_batches(task.case, ranks, _OWN_BATCHES if own else "")
    task.kind.check(task.workload, ranks)
    if task.framework:
        imported = ranks[0]["framework_version"]
        outcome.check_version(task.framework.package, task.request.pins, imported)


def metrics_of(
    kind: Kind, workload: Workload, left: Sequence[Mapping[str, Any]]
) -> Dict[str, Optional[float]]:
    """Return the metrics of a successful run from its ranks or attempts. Raises Mismatch where one
    is missing."""
    values = {}
    for name, metric in kind.metrics(workload).items():
        try:
            values[name] = combined(metric, left)
        except Exception as error:
            raise Mismatch(f"the ranks left no {name}: {error_text(error)}") from error
        if values[name] is None and not metric.optional:
            raise Mismatch(f"the ranks left no {name}")
    return values


def run_search(setup: Setup, kind: SearchKind, arguments: Sequence[str]) -> record.Measured:
    """Run a search and judge it."""
    task = setup.task
    try:
        measured = search.measure(task, kind, arguments, setup.schema)
    except Unsupported as error:
        return record.Measured("unsupported", error_text(error), [])
    if measured.status != "ok":
        return measured
    return replace(measured, metrics=metrics_of(kind, task.workload, measured.attempts))


def refused(setup: Setup, installed: Mapping[str, str]) -> Optional[record.Measured]:
    """Return the result of a run that cannot start; None where it can. ``installed``: versions of
    all packages."""
    task = setup.task
    if isinstance(task.kind, SearchKind):  # its runs say so
        return None
    cannot = declaration.unsupported(task)
    if cannot is None and task.request.emulated == SKIP:
        cannot = emulated(task)
    if cannot:
        return record.Measured("unsupported", cannot, [])
    wrong = packages.wrong_environment(task.request.prefix, task.request.pins, installed)
    wrong = wrong or declaration.too_few_cores(task, len(setup.cores))
    wrong = wrong or software.missing(task.request, setup.common)
    wrong = wrong or allocator.missing(task.request.preload)
    wrong = wrong or (allocator.no_huge_pages() if task.request.huge_pages else None)
    wrong = wrong or node.elsewhere(task.request.node)
    if task.case.precision:
        wrong = wrong or variables.refused(task.case.precision, setup.common)
    if wrong:
        return record.Measured("failed", wrong, [])
    return None


def emulated(task: declaration.Task) -> Optional[str]:
    """Return why this CPU emulates the precision of the run; None where it does not."""
    precision = task.case.precision
    if task.request.accelerator != "cpu" or not precision:
        return None
    return precisions.emulated(precision, processor().get("instruction_sets", ())) or None


def outcome_of(setup: Setup, arguments: Sequence[str]) -> record.Measured:
    """Return the result of the ranks, or of the runs of a search."""
    kind = setup.task.kind
    try:
        if isinstance(kind, SearchKind):
            return run_search(setup, kind, arguments)
        return run_ranks(setup, arguments)
    except search.NoRecord:
        raise
    except nodes.StartTimeout as error:
        return record.Measured("timeout", str(error), [])
    except (nodes.Missing, Mismatch) as error:
        return record.Measured("failed", error_text(error), [])
    except Interrupted:
        reached = scheduler.limit_reached(os.environ)
        if not reached:
            raise
        return record.Measured("timeout", reached, [])
    except Exception as error:
        traceback.print_exc()
        return record.Measured("failed", f"the launcher failed: {error_text(error)}", [])


def measure(setup: Setup, started: record.Started, arguments: Sequence[str]) -> Dict[str, Any]:
    """Return the record of this run, whatever happens except a signal other than the scheduler's at
    the end of its job's time. Raises :class:`search.NoRecord`."""
    task = setup.task
    request, framework = task.request, task.framework
    installed = packages.installed(packages.search_path(setup.common, setup.folder))
    where = environment.capture(request.install_method, setup.cores, installed, setup.common)
    where.update(software.fields(request, setup.common))
    where["dropped_variables"] = node.dropped_variables(request)
    if setup.devices.gpu:
        gpus = where["hardware"]["gpus"]
        where["hardware"]["gpus"] = [gpu for gpu in gpus if gpu["uuid"] == setup.devices.gpu]
    measured = refused(setup, installed) or outcome_of(setup, arguments)
    version = installed.get(packages.normal(framework.package), "") if framework else ""
    if framework:
        where["code"]["computation"] = computation.digest(
            framework.folder, task.workload.model_config
        )
    made = record.assemble(task, measured, where, setup.command, started, version)
    return record.checked(made, setup.schema)


@contextlib.contextmanager
def devices_for(
    request: Request, is_search: bool, common: Dict[str, str]
) -> Iterator[node.Devices]:
    """Yield the locked devices of a run until the context ends.

    A search has none: its runs lock their own. ``common``: variables of all ranks, which see only
    the GPU of a run side by side from now on. Raises MachineLockError."""
    if is_search:
        yield node.Devices()
        return
    names = hardware.visible_gpus(common) if request.side_by_side else []
    known = hardware.gpus() if names else []
    places = [hardware.index_of(name, known) for name in names]
    locks = [name if at is None else known[at]["uuid"] for name, at in zip(names, places)]
    with machine_lock.held(node.owner(request), locks) as (files, taken):
        if not names:
            yield node.Devices(files)
            return
        common.update(CUDA_VISIBLE_DEVICES=names[taken], CUDA_DEVICE_ORDER="PCI_BUS_ID")
        # Its part of the cores near all GPUs, so that neighbours get other cores.
        near = cores_of.near_gpus([gpu["pci_address"] for gpu in known], cores_of.allowed())
        place, before = places[taken], cores_of.allowed()
        if place is not None and near[place]:
            os.sched_setaffinity(0, near[place])
        yield node.Devices(files, locks[taken], len(names))
        os.sched_setaffinity(0, before)


def run(request: Request, forks: Optional[ForkServer]) -> int:
    """Measure and write the record. Returns the exit status. Raises
    :class:`output.OutputError`."""
    if os.path.lexists(request.output):
        print(output.measured_already(request.output), file=sys.stderr)
        return _CANNOT_DO
    folder = os.path.dirname(os.path.realpath(__file__))
    variables = [*recorded(dict(request.variables)).items()]
    command = as_typed(sys.executable, folder, request.arguments, request.parameters, variables)
    # The same on all nodes, where nothing was said of it.
    arguments = [*request.arguments, "--output", request.output, "--log", request.log]
    try:
        task = declaration.task_of(request)
        schema = record_schema()
    except (declaration.DeclarationError, SchemaError) as error:
        print(error, file=sys.stderr)
        return _CANNOT_DO
    identity = uuid.uuid4().hex
    cores_of.restrict(request.cores, control_groups.whole_cores())
    cores = cores_of.allowed()
    common = node.common_environment(request)
    with devices_for(request, isinstance(task.kind, SearchKind), common) as devices:
        # After waiting for devices, which does not count.
        started = record.Started.at(time.monotonic())
        output.prepare(request.output, request.log)
        with temporary_folder() as folder:
            deadline = started.monotonic + request.time_limit
            setup = Setup(
                task, schema, identity, folder, deadline, command, cores, common, devices, forks
            )
            result = measure(setup, started, arguments)
            output.write(request.output, identity, record.encode(result))
    print(record.summary(result, request.output), flush=True)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Return the exit status.

    0 whenever a record was written, whatever it says; 2 for a wrong command line or an existing
    output; 3 where the output cannot be written or the machine cannot be locked; 128 + N after
    signal N, without a record; that of a run of a search that left none. Of several checks, the
    first status but 0."""
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent:
        signal_when_parent_dies(signal.SIGTERM)
        if str(os.getppid()) != parent:  # it has ended before the kernel could be asked
            return 128 + signal.SIGTERM
    requests = [parse(words) for words in each_check(arguments)]
    status = 0
    try:
        with signals_raise(), ForkServer() as server:
            for request in requests:
                try:
                    ended = run(request, server if len(requests) > 1 else None)
                except (machine_lock.MachineLockError, output.OutputError) as error:
                    print(error, file=sys.stderr)
                    ended = _CANNOT_WRITE
                status = status or ended
            return status
    except search.NoRecord as error:
        print(f"a run of the search left no record (exit status {error.status})", file=sys.stderr)
        return error.status
    except Interrupted as interrupted:
        print(f"interrupted by signal {interrupted.number}: no record was written", file=sys.stderr)
        return 128 + interrupted.number
